"""Slice, Pad, Tile and Reshape with run-time starts, widths, repeats or sizes.

Each kernel first computes the sizes of its result. A run whose sizes differ from the declared ones,
or exceed their bounds, ends there. Then each element of the result is read from its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.movement import emit_tile, reshape
from smelt.native.kernels.nest import emit_map
from smelt.native.kernels.operand import Operand
from smelt.native.kernels.pad import emit_pad
from smelt.program.instruction import (
    DYNAMIC_PAD,
    DYNAMIC_RESHAPE,
    DYNAMIC_SLICE,
    DYNAMIC_TILE,
)
from smelt.program.run_sizes import Size

MOST = 1 << 40
"""The largest absolute value of pads and repeats; larger ones fit no memory."""


def _begin(cx: KernelContext, arrays: Sequence[str]) -> tuple[Operand, Operand, int]:
    """Declare the input's sizes and the C ``arrays``, each with a number per dim.

    Returns input, output and rank.
    """
    source, output = cx.input(0), cx.output()
    rank = len(source.shape)
    cx.may_fail()
    sizes = ", ".join(f"{size}" for size in source.shape)
    cx.body.line(f"const ptrdiff_t size[{rank}] = {{ {sizes} }};")
    for name in arrays:
        cx.body.line(f"ptrdiff_t {name}[{rank}];")
        cx.body.line(f"(void){name};")  # a copy reads no step along a dim of one element
    return source, output, rank


def _axis(cx: KernelContext, axes: Operand | None, rank: int) -> None:
    """Declare ``a``, the axis of entry ``j``; an axis out of range ends the run."""
    if axes is None:
        cx.body.line("const ptrdiff_t a = j;")
        return
    cx.body.line(f"const ptrdiff_t a = (ptrdiff_t){axes.name}[j]{_counted_from_end(axes, rank)};")
    cx.body.line(f"if (a < 0 || a >= {rank})")
    cx.body.line("    return 1;")


def _counted_from_end(axes: Operand, rank: int) -> str:
    """Return the C that adds the rank to a negative axis, so that -1 becomes the last one."""
    return f" + ({axes.name}[j] < 0 ? {rank} : 0)"


def _entry(name: str, at: int | str) -> int:
    """Return entry ``at`` of the C array ``name`` as a size."""
    return cast(int, Size.named(f"{name}[{at}]", -MOST, MOST))


def _define_sizes(cx: KernelContext, output: Operand) -> None:
    """Define each size of the output as the array ``count`` has it."""
    for dim, size in enumerate(output.shape):
        cx.define_size(size, f"count[{dim}]")


def _refuse_scalar(instance: Instance) -> str | None:
    """Return why a scalar is refused, None for other shapes."""
    return None if instance.shape(0) else "a scalar"


@kernel(DYNAMIC_SLICE, kinds=ANY, refuse=_refuse_scalar)
def dynamic_slice(cx: KernelContext) -> None:
    """Write the sizes of a Slice, then one loop nest that reads by strides and an offset.

    For each entry ``j``, the C computes:

    1. ``n``, the size of dim ``a``; start ``s`` and end ``e``, with ``n`` added if negative;
    2. the step ``p``, limited to +-(n + 1): larger steps have the same result, and would overflow;
    3. ``s`` and ``e`` clamped to the dim. Backwards, ``s`` is at most n - 1, and ``e`` may be -1;
    4. the number of elements from the distance ``far`` of ``s`` and ``e``.
    """
    source, output, rank = _begin(cx, ("first", "step", "count"))
    starts, ends, axes, steps = cx.input(1), cx.input(2), cx.optional(3), cx.optional(4)
    body = cx.body
    with body.loop("d", rank):
        body.line("first[d] = 0;")
        body.line("step[d] = 1;")
        body.line("count[d] = size[d];")
    with body.loop("j", starts.size):
        _axis(cx, axes, rank)
        body.line("const int64_t n = size[a];")
        for name, bounds in (("s", starts), ("e", ends)):
            body.line(f"int64_t {name} = {bounds.name}[j];")
            body.line(f"{name} = {name} < 0 ? {name} + n : {name};")
        body.line(f"int64_t p = {f'{steps.name}[j]' if steps is not None else 1};")
        body.line("if (p == 0)")
        body.line("    return 1;")
        body.line("p = p < -n - 1 ? -n - 1 : p > n + 1 ? n + 1 : p;")
        body.line("const int64_t low = p > 0 ? 0 : -1, high = p > 0 ? n : n - 1;")
        body.line("s = s < (p > 0 || n == 0 ? low : 0) ? (p > 0 || n == 0 ? low : 0) : s;")
        body.line("s = s > high ? high : s;")
        body.line("e = e < low ? low : e > high ? high : e;")
        body.line("const int64_t far = p > 0 ? e - s : s - e;")
        body.line("first[a] = (ptrdiff_t)s;")
        body.line("step[a] = (ptrdiff_t)p;")
        body.line("count[a] = (ptrdiff_t)(far > 0 ? (far - 1) / (p > 0 ? p : -p) + 1 : 0);")
    _define_sizes(cx, output)
    strides = [_entry("step", dim) * stride for dim, stride in enumerate(source.strides)]
    offset = sum(_entry("first", dim) * stride for dim, stride in enumerate(source.strides))
    emit_map(body, output.shape, output.access(), [source.access(strides, offset)], "{0}")


def _refuse_mode(instance: Instance) -> str | None:
    """Return why the mode is refused, None if it is supported."""
    mode = instance.instruction.attributes["mode"]
    if mode not in ("constant", "reflect", "edge", "wrap"):
        return f"mode {mode!r}"
    return _refuse_scalar(instance)


@kernel(DYNAMIC_PAD, kinds=ANY, refuse=_refuse_mode)
def dynamic_pad(cx: KernelContext) -> None:
    """Write the sizes of a Pad, then the same copy as for pads in the model.

    A negative width crops. Only mode constant may crop, or pad an empty dim.

    ```
    const int64_t b = x1[j], e = x1[j + 2];
    before[a] = (ptrdiff_t)b, count[a] = (ptrdiff_t)(size[a] + b + e);
    ```
    """
    source, output, rank = _begin(cx, ("before", "count"))
    pads, value, axes = cx.input(1), cx.optional(2), cx.optional(3)
    mode, body, count = str(cx.instruction.attributes["mode"]), cx.body, pads.size // 2
    with body.loop("d", rank):
        body.line("before[d] = 0;")
        body.line("count[d] = size[d];")
    with body.loop("j", count):
        _axis(cx, axes, rank)
        body.line(f"const int64_t b = {pads.name}[j], e = {pads.name}[j + {count}];")
        body.line(f"if (b > {MOST} || b < -{MOST} || e > {MOST} || e < -{MOST})")
        body.line("    return 1;")
        if mode != "constant":
            body.line("if (b < 0 || e < 0 || (size[a] == 0 && b + e > 0))")
            body.line("    return 1;")
        body.line("before[a] = (ptrdiff_t)b;")
        body.line("count[a] = (ptrdiff_t)(size[a] + b + e);")
    _define_sizes(cx, output)
    before = [_entry("before", dim) for dim in range(rank)]
    sizes = zip(output.shape, source.shape, before, strict=True)
    after = [result_size - size - each for result_size, size, each in sizes]
    emit_pad(cx, source, [*before, *after], f"{value.name}[0]" if value is not None else "0")


@kernel(DYNAMIC_TILE, kinds=ANY, refuse=_refuse_scalar)
def dynamic_tile(cx: KernelContext) -> None:
    """Write the sizes of a Tile, then the same copy as for repeats in the model."""
    source, repeats_input, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    cx.may_fail()
    repeats = [_entry(repeats_input.name, dim) for dim in range(len(source.shape))]
    for dim, times in enumerate(repeats):
        body.line(f"if ({times} < 0 || {times} > {MOST})")
        body.line("    return 1;")
        cx.define_size(output.shape[dim], str(times * source.shape[dim]))
    emit_tile(cx, source, repeats)


@kernel(DYNAMIC_RESHAPE, kinds=ANY)
def dynamic_reshape(cx: KernelContext) -> None:
    """Write the sizes of a Reshape, then a copy.

    A size of 0 means the input's size unless ``allowzero``; -1 is computed from the other sizes.
    In C, ``open`` is the dim of size -1, ``known`` the product of the other sizes, and ``whole``
    the number of elements. A run fails with a second -1, or if the product is not ``whole``.
    """
    source, shape, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    rank, input_rank = len(output.shape), len(source.shape)
    cx.may_fail()
    body.line(f"const int64_t whole = {source.size};")
    body.line(f"const ptrdiff_t size[] = {{ {', '.join(map(str, (*source.shape, 0)))} }};")
    body.line(f"ptrdiff_t count[{rank}], open = -1;")
    body.line("int64_t known = 1;")
    with body.loop("d", rank):
        body.line(f"int64_t n = {shape.name}[d];")
        if not cx.int("allowzero"):
            body.line(f"n = n == 0 ? (d < {input_rank} ? size[d] : -2) : n;")
        body.line(f"if (n < -1 || n > {MOST} || known > {MOST} || (n == -1 && open >= 0))")
        body.line("    return 1;")
        body.line("open = n == -1 ? d : open;")
        body.line("n = n == -1 ? 1 : n;")
        body.line("count[d] = (ptrdiff_t)n;")
        body.line("known *= n;")
    with body.block("if (open >= 0)"):
        body.line("if (known == 0 || whole % known != 0)")
        body.line("    return 1;")
        body.line("count[open] = (ptrdiff_t)(whole / known);")
        body.line("known = whole;")
    body.line("if (known != whole)")
    body.line("    return 1;")
    body.line("(void)size;")
    _define_sizes(cx, output)
    reshape(cx)
