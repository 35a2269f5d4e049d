"""Batch, layer, RMS, instance and group normalization: a few passes over each row of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import broadcast_strides, index
from smelt.native.kernels.operand import Operand
from smelt.native.kernels.row_sums import sum_of
from smelt.native.types import CType
from smelt.program.run_sizes import is_empty, zero_if_empty
from smelt.program.storage import Needs


def _in_place(instance: Instance) -> Needs:
    """Return needs by which the result may overwrite the input."""
    return Needs(in_place=(0,))


@kernel("BatchNormalization", needs=_in_place)
def batch_normalization(cx: KernelContext) -> None:
    """Write a loop per channel, dim 1, with one factor and one addend."""
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


def _mixed_types(instance: Instance) -> str | None:
    """Return why the kernel refuses operands of different element types; None if all are alike."""
    inputs = range(len(instance.instruction.inputs))
    present = [i for i in inputs if instance.slot(i) is not None]
    if any(instance.type(i) != instance.type(0) for i in present):
        return "operands of different element types"
    return None


@kernel("LayerNormalization", "RMSNormalization", needs=_in_place, refuse=_mixed_types, shared=True)
def layer_normalization(cx: KernelContext) -> None:
    """Write the normalization over all dims from ``axis`` on; scale and bias broadcast over the
    input.

    ```
    for (ptrdiff_t o = 0; o < 32; ++o) {
        const float mean = sum_float(x, 64, 0) / 64;
        const float variance = squares_float(x, 64, mean) / 64;
        const float f = 1 / sqrtf(variance + 1.0e-05f);
        ... y[at] = (x[at] - mean) * f * x1[i0] + x2[i0];
    ```
    """
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    axis = cx.int("axis")
    count = math.prod(source.shape[axis:])
    outer = cast(int, zero_if_empty(math.prod(source.shape[:axis]), count))
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
        with _row_loops(cx, source.shape, axis) as variables:
            at = index((1,), (variables[-1],))
            line = f"(x[{at}] - mean) * f" if centred else f"x[{at}] * f"
            for operator, factor in zip((" * ", " + "), factors, strict=False):
                line += operator + _broadcast_element(factor, source.shape, variables[:-1])
            cx.body.line(f"y[{at}] = {line};")


def _emit_moments(cx: KernelContext, t: CType, count: int, epsilon: float, centred: bool) -> None:
    """Declare ``f``, the inverse deviation of the row ``x``, and ``mean`` if ``centred``."""
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
def _row_loops(cx: KernelContext, shape: Sequence[int], axis: int) -> Iterator[list[str]]:
    """Write loops over one row; yield a variable for every dim, and last the position in the row.

    The indices of dims before ``axis`` are expressions of ``o``.
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
    """Return the element of a scale or bias, broadcast to ``shape``, as C."""
    return f"{factor.name}[{index(broadcast_strides(factor.shape, shape), variables)}]"


def _groups(instance: Instance) -> int:
    """Return the number of groups: one per channel for InstanceNormalization."""
    channels = instance.shape(0)[1]
    return instance.int("num_groups") if "num_groups" in instance.attributes else channels


def _refuse_groups(instance: Instance) -> str | None:
    """Return why the groups or types are refused, None if they are supported."""
    if instance.shape(0)[1] % max(_groups(instance), 1):
        return "channels that do not divide into the groups"
    return _mixed_types(instance)


@kernel("InstanceNormalization", "GroupNormalization", needs=_in_place, refuse=_refuse_groups)
def group_normalization(cx: KernelContext) -> None:
    """Write the normalization over the channels of a group and all spatial dims.

    Scale and bias are per channel.
    """
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    scale, bias = cx.input(1).name, cx.input(2).name
    samples, channels, *spatial = source.shape
    inner, groups = math.prod(spatial), _groups(cx)
    width = channels // groups
    samples = cast(int, zero_if_empty(samples, inner))
    with cx.body.loops(("n", "g"), (samples, groups)):
        offset = f"(n * {groups} + g) * {width * inner}"
        cx.body.line(f"const {t.name} *x = {source.name} + {offset};")
        cx.body.line(f"{t.name} *y = {output.name} + {offset};")
        _emit_moments(cx, t, width * inner, cx.float("epsilon"), centred=True)
        with cx.body.loops(("c", "i"), (width, inner)):
            at, channel = f"[{index((inner, 1), ('c', 'i'))}]", f"[g * {width} + c]"
            line = f"(x{at} - mean) * f * {scale}{channel} + {bias}{channel}"
            cx.body.line(f"y{at} = {line};")
