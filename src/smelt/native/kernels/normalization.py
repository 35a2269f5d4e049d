"""Softmax and the normalizations: a few passes over each row of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, Operand, kernel
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.nest import broadcast_strides, index
from smelt.native.kernels.reduce import LANES
from smelt.native.types import CType
from smelt.program.run_sizes import if_any, is_empty, same
from smelt.program.storage import Needs

COLUMNS = 64
"""Rows of a Softmax that are computed side by side where their elements are not neighbours: their
sums take half a kilobyte of the stack."""


def _in_place(instance: Instance) -> Needs:
    return Needs(in_place=(0,))


def _joined(step: str) -> str:
    """C that joins lanes by halves, each an operation on vectors."""
    widths = [LANES >> i for i in range(1, LANES.bit_length())]
    loops = [f"    for (ptrdiff_t j = 0; j < {w}; ++j)\n        {step.format(w)}" for w in widths]
    return "\n".join(loops)


def sum_of(cx: KernelContext, type_: CType, expression: str, stem: str) -> str:
    """A support function ``stem(x, n, c)``: the sum of ``expression`` over ``x``, in partial sums.

    The expression is in ``v``, an element, and ``c``.
    """
    name = f"{stem}_{type_.name}"
    t = type_.name
    text = f"""static {t} {name}(const {t} *x, ptrdiff_t n, {t} c)
{{
    {t} lane[{LANES}] = {{ 0 }}, sum = 0;
    const ptrdiff_t whole = n - n % {LANES};
    for (ptrdiff_t i = 0; i < whole; i += {LANES})
        for (ptrdiff_t j = 0; j < {LANES}; ++j) {{
            const {t} v = x[i + j];
            lane[j] += {expression};
        }}
    for (ptrdiff_t i = whole; i < n; ++i) {{
        const {t} v = x[i];
        sum += {expression};
    }}
{_joined("lane[j] += lane[j + {}];")}
    (void)c;
    return sum + lane[0];
}}
"""
    return cx.call(name, text)


@kernel("Softmax", "LogSoftmax", needs=_in_place, shared=True)
def softmax(cx: KernelContext) -> None:
    """Relative to the largest element of each row, so that nothing overflows."""
    shape, axis = cx.input(0).shape, cx.int("axis")
    if is_empty(shape):
        return
    count = shape[axis] if shape else 1
    inner = math.prod(shape[axis + 1 :])
    outer = cast(int, if_any(math.prod(shape[:axis]), count))
    if same(inner, 1):
        _emit_softmax_rows(cx, outer, count)
        return
    _emit_softmax_columns(cx, outer, count, inner)


def _emit_softmax_columns(cx: KernelContext, outer: int, count: int, inner: int) -> None:
    """Elements of a row lie ``inner`` apart: as many rows side by side as ``COLUMNS``, so that
    each loop is over neighbours."""
    source, output, t, body = cx.input(0), cx.output(), cx.type(0), cx.body
    width = min(inner, COLUMNS) if isinstance(inner, int) else COLUMNS
    shared = body.widest((outer, -(-inner // width))) if body.parts > 1 else None
    across, along = (body.shared_loop if shared == dim else body.loop for dim in (0, 1))
    with across("o", outer), along("k", inner, 0, width):
        offset = index((count * inner, 1), ("o", "k"))
        body.line(f"const {t.name} *x = {source.name} + {offset};")
        body.line(f"{t.name} *y = {output.name} + {offset};")
        body.line(f"{t.name} top[{width}], sum[{width}];")
        end = width if isinstance(inner, int) and inner % width == 0 else "columns"
        if end != width:
            body.line(f"const ptrdiff_t left = {inner} - k;")
            body.line(f"const ptrdiff_t columns = left < {width} ? left : {width};")
        with body.loop("j", end):
            body.line("top[j] = x[j], sum[j] = 0;")
        with body.loop("i", count, start=1), body.loop("j", end):
            body.line(f"const {t.name} v = x[i * {inner} + j];")
            body.line("top[j] = ((v > top[j]) | (v != v)) ? v : top[j];")
        with body.loop("i", count), body.loop("j", end):
            e = in_lanes(cx, f"exp{t.f}(x[i * {inner} + j] - top[j])")
            body.line(f"const {t.name} e = {e};")
            if cx.instruction.op == "Softmax":
                body.line(f"y[i * {inner} + j] = e;")
            body.line("sum[j] += e;")
        with body.loop("j", end):
            last = "1 / sum[j]" if cx.instruction.op == "Softmax" else f"log{t.f}(sum[j])"
            body.line(f"sum[j] = {last};")
        with body.loop("i", count), body.loop("j", end):
            at = f"[i * {inner} + j]"
            scaled = (
                f"y{at} * sum[j]" if cx.instruction.op == "Softmax" else f"x{at} - top[j] - sum[j]"
            )
            body.line(f"y{at} = {scaled};")


def _emit_softmax_rows(cx: KernelContext, outer: int, count: int) -> None:
    """Rows of neighbours: each pass is a loop without a chain from element to element."""
    source, output, t, body = cx.input(0), cx.output(), cx.type(0), cx.body
    e = in_lanes(cx, f"exp{t.f}(x[i] - top)")
    with body.shared_loop("o", outer):
        body.line(f"const {t.name} *x = {source.name} + o * {count};")
        body.line(f"{t.name} *y = {output.name} + o * {count};")
        body.line(f"const {t.name} top = {_largest_of(cx, t)}(x, {count});")
        if cx.instruction.op == "Softmax":
            with body.loop("i", count):
                body.line(f"y[i] = {e};")
            body.line(f"const {t.name} sum = {sum_of(cx, t, 'v', 'sum')}(y, {count}, 0);")
            # The sum is 1 or more, so its inverse is as good a factor.
            body.line(f"const {t.name} share = 1 / sum;")
            with body.loop("i", count):
                body.line("y[i] *= share;")
            return
        total = sum_of(cx, t, in_lanes(cx, f"exp{t.f}(v - c)"), "sum_exp")
        body.line(f"const {t.name} sum = log{t.f}({total}(x, {count}, top));")
        with body.loop("i", count):
            body.line("y[i] = x[i] - top - sum;")


def _largest_of(cx: KernelContext, type_: CType) -> str:
    """A support function of ``(x, n)``: the largest element, NaN if there is one."""
    t, name = type_.name, f"largest_{type_.name}"
    text = f"""static {t} {name}(const {t} *x, ptrdiff_t n)
{{
    {t} lane[{LANES}], top = x[0];
    const ptrdiff_t whole = n - n % {LANES};
    for (ptrdiff_t j = 0; j < {LANES}; ++j)
        lane[j] = top;
    for (ptrdiff_t i = 0; i < whole; i += {LANES})
        for (ptrdiff_t j = 0; j < {LANES}; ++j) {{
            const {t} v = x[i + j];
            lane[j] = ((v > lane[j]) | (v != v)) ? v : lane[j];
        }}
    for (ptrdiff_t i = whole; i < n; ++i)
        top = ((x[i] > top) | (x[i] != x[i])) ? x[i] : top;
{
        _joined(
            "lane[j] = ((lane[j + {0}] > lane[j]) | (lane[j + {0}] != lane[j + {0}]))"
            " ? lane[j + {0}] : lane[j];"
        )
    }
    return ((lane[0] > top) | (lane[0] != lane[0])) ? lane[0] : top;
}}
"""
    return cx.call(name, text)


@kernel("BatchNormalization", needs=_in_place)
def batch_normalization(cx: KernelContext) -> None:
    """One factor and one addend a channel, dim 1."""
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    scale, bias, mean, variance = (cx.input(i).name for i in range(1, 5))
    shape = source.shape
    inner = math.prod(shape[2:])
    channels = shape[1] if len(shape) > 1 else 1
    epsilon = t.literal(cx.float("epsilon"))
    with cx.body.loops(("n", "c"), (shape[0], channels)):
        cx.body.line(
            f"const {t.name} f = (({t.name}){scale}[c] / sqrt{t.f}({variance}[c] + {epsilon}));"
        )
        with cx.body.loop("i", inner):
            at = f"[{index((channels * inner, inner, 1), ('n', 'c', 'i'))}]"
            line = f"({source.name}{at} - {mean}[c]) * f + {bias}[c]"
            cx.body.line(f"{output.name}{at} = {line};")


def _one_type(instance: Instance) -> str | None:
    inputs = range(len(instance.instruction.inputs))
    present = [i for i in inputs if instance.slot(i) is not None]
    if any(instance.type(i) != instance.type(0) for i in present):
        return "operands of different element types"
    return None


@kernel("LayerNormalization", "RMSNormalization", needs=_in_place, refuse=_one_type, shared=True)
def layer_normalization(cx: KernelContext) -> None:
    """Over all dims from ``axis`` on; scale and bias broadcast over the input."""
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    axis = cx.int("axis")
    count = math.prod(source.shape[axis:])
    outer = cast(int, if_any(math.prod(source.shape[:axis]), count))
    centred = cx.instruction.op == "LayerNormalization"
    factors = [operand for i in (1, 2) if (operand := cx.optional(i)) is not None]
    if is_empty(source.shape):
        return
    with cx.body.shared_loop("o", outer):
        cx.body.line(f"const {t.name} *x = {source.name} + o * {count};")
        cx.body.line(f"{t.name} *y = {output.name} + o * {count};")
        _emit_moments(cx, t, count, cx.float("epsilon"), centred)
        for position, name in enumerate(("mean", "f"), 1):
            if position < len(cx.instruction.outputs) and cx.instruction.outputs[position] >= 0:
                cx.body.line(f"{cx.output(position).name}[o] = {name};")
        with _walk(cx, source.shape, axis) as variables:
            at = index((1,), (variables[-1],))
            line = f"(x[{at}] - mean) * f" if centred else f"x[{at}] * f"
            for operator, factor in zip((" * ", " + "), factors, strict=False):
                line += operator + _broadcast_element(factor, source.shape, variables[:-1])
            cx.body.line(f"y[{at}] = {line};")


def _emit_moments(cx: KernelContext, t: CType, count: int, epsilon: float, centred: bool) -> None:
    """Declare ``f``, one over the deviation of ``x``, and ``mean`` if it is taken off."""
    number = f"{count}" if isinstance(count, int) else f"({t.name}){count}"
    centre = "0"
    if centred:
        total = sum_of(cx, t, "v", "sum")
        cx.body.line(f"const {t.name} mean = {total}(x, {count}, 0) / {number};")
        centre = "mean"
    squares = sum_of(cx, t, "(v - c) * (v - c)", "squares")
    cx.body.line(f"const {t.name} variance = {squares}(x, {count}, {centre}) / {number};")
    cx.body.line(f"const {t.name} f = 1 / sqrt{t.f}(variance + {t.literal(epsilon)});")


@contextmanager
def _walk(cx: KernelContext, shape: Sequence[int], axis: int) -> Iterator[list[str]]:
    """Loops over one row; yields a variable for every dim, and last the position in the row.

    The dims before ``axis`` are recovered from ``o`` only where a factor needs them.
    """
    outer = shape[:axis]
    names: list[str] = []
    for dim in range(axis):
        step = math.prod(outer[dim + 1 :])
        names.append(f"(o / {step} % {outer[dim]})")
    inner = [f"i{dim}" for dim in range(len(shape) - axis)]
    cx.body.line("ptrdiff_t at = 0;")
    with cx.body.loops(inner, shape[axis:]):
        yield [*names, *inner, "at"]
        cx.body.line("++at;")


def _broadcast_element(factor: Operand, shape: Sequence[int], variables: Sequence[str]) -> str:
    return f"{factor.name}[{index(broadcast_strides(factor.shape, shape), variables)}]"


def _groups(instance: Instance) -> int:
    channels = instance.shape(0)[1]
    return instance.int("num_groups") if "num_groups" in instance.attributes else channels


def _refuse_groups(instance: Instance) -> str | None:
    if instance.shape(0)[1] % max(_groups(instance), 1):
        return "channels that do not divide into the groups"
    return _one_type(instance)


@kernel("InstanceNormalization", "GroupNormalization", needs=_in_place, refuse=_refuse_groups)
def group_normalization(cx: KernelContext) -> None:
    """Over the channels of a group and all spatial dims; one scale and bias a channel."""
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    scale, bias = cx.input(1).name, cx.input(2).name
    samples, channels, *spatial = source.shape
    inner, groups = math.prod(spatial), _groups(cx)
    if is_empty(source.shape):
        return
    width = channels // groups
    samples = cast(int, if_any(samples, inner))
    with cx.body.loops(("n", "g"), (samples, groups)):
        offset = f"(n * {groups} + g) * {width * inner}"
        cx.body.line(f"const {t.name} *x = {source.name} + {offset};")
        cx.body.line(f"{t.name} *y = {output.name} + {offset};")
        _emit_moments(cx, t, width * inner, cx.float("epsilon"), centred=True)
        with cx.body.loops(("c", "i"), (width, inner)):
            at, channel = f"[{index((inner, 1), ('c', 'i'))}]", f"[g * {width} + c]"
            line = f"(x{at} - mean) * f * {scale}{channel} + {bias}{channel}"
            cx.body.line(f"y{at} = {line};")
