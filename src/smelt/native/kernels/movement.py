"""Operators that move elements, each as one or several strided copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from smelt.ir.rows import rows_taken
from smelt.native.kernels import transpose_planes
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import emit_map, row_major
from smelt.native.kernels.operand import Operand
from smelt.program.chips.overlap import STORE
from smelt.program.instruction import DIAGONAL, DYNAMIC_EXPAND
from smelt.program.run_rows import first_row
from smelt.program.run_sizes import Dim, same
from smelt.program.storage import Needs


@kernel("Shape", "Size", kinds=ANY)
def shape(cx: KernelContext) -> None:
    """Write the sizes as constants, or their product for Size."""
    sizes, output = cx.shape(0), cx.output()
    if cx.instruction.op == "Size":
        sizes = (math.prod(sizes),)
    else:
        sizes = sizes[cx.int("start") : cx.int("end")]
    for i, size in enumerate(sizes):
        cx.body.line(f"{output.name}[{i}] = {size};")


def _view(instance: Instance) -> Needs:
    """Return needs by which the result is a view of the input."""
    return Needs(view_of=0)


@kernel("Reshape", "Identity", needs=_view, kinds=ANY)
def reshape(cx: KernelContext) -> None:
    """Write a copy. It is not called, because a view needs no code."""
    source, output = cx.input(0), cx.output()
    emit_map(cx.body, (output.size,), output.access((1,)), [source.access((1,))], "{0}")


@kernel("Transpose", kinds=ANY, shared=True)
def transpose(cx: KernelContext) -> None:
    """Write one loop nest that reads with permuted strides."""
    source, output = cx.strided_input(0), cx.output()
    strides = tuple(source.strides[axis] for axis in cx.ints("perm"))
    read = source.access(strides)
    if transpose_planes.supports(cx, output.access(), read):
        transpose_planes.emit(cx, output.access(), read)
        return
    emit_map(cx.body, output.shape, output.access(), [read], "{0}", shared=True)


@kernel(DIAGONAL, kinds=ANY)
def diagonal(cx: KernelContext) -> None:
    """Write one loop nest; a dim to which several dims are mapped reads by the sum of their
    strides.
    """
    source, output = cx.strided_input(0), cx.output()
    strides = [0] * len(output.shape)
    for axis, stride in zip(cx.ints("axes"), source.strides, strict=True):
        strides[axis] += stride
    emit_map(cx.body, output.shape, output.access(), [source.access(strides)], "{0}")


@kernel("Expand", kinds=ANY)
def expand(cx: KernelContext) -> None:
    """Write one loop nest that reads with stride 0 along broadcast dims."""
    source, output = cx.strided_input(0), cx.output()
    read = source.broadcast(output.shape, by_run=True)
    emit_map(cx.body, output.shape, output.access(), [read], "{0}")


@kernel(DYNAMIC_EXPAND, kinds=ANY)
def dynamic_expand(cx: KernelContext) -> None:
    """Write a broadcast to run-time sizes: the output has the larger of both sizes of a dim.

    A run ends unless each pair of sizes is equal or one of them is 1.
    """
    source, sizes, output = cx.input(0), cx.input(1), cx.output()
    cx.may_fail()
    rank, count = len(output.shape), sizes.size
    aligned_shape = (1,) * (rank - len(source.shape)) + source.shape
    for i in range(count):
        dim = rank - count + i
        output_size, input_size = (output.shape[dim], aligned_shape[dim]) if dim >= 0 else (1, 1)
        size = f"{sizes.name}[{i}]"
        if not same(input_size, 1):
            cx.body.line(f"if ({size} != 1 && {size} != {input_size} && {input_size} != 1)")
            cx.body.line("    return 1;")
        cx.body.line(f"const int64_t told{i} = {size} == 1 ? {input_size} : {size};")
        cx.define_size(output_size, f"told{i}")
    for dim in range(rank - count):
        if not same(aligned_shape[dim], output.shape[dim]):
            cx.body.line("return 1;")
            return
    emit_map(cx.body, output.shape, output.access(), [source.broadcast(output.shape)], "{0}")


@kernel("Tile", kinds=ANY)
def tile(cx: KernelContext) -> None:
    """Write a Tile whose repeats are in the model."""
    emit_tile(cx, cx.strided_input(0), cx.ints("repeats"))


def emit_tile(cx: KernelContext, source: Operand, repeats: Sequence[int]) -> None:
    """Write one loop nest with two loops per dim: over the repeats, with stride 0, and over the
    dim.
    """
    shape = [n for pair in zip(repeats, source.shape, strict=True) for n in pair]
    strides = [n for stride in source.strides for n in (0, stride)]
    write = cx.output().access(row_major(shape))
    emit_map(cx.body, shape, write, [source.access(strides)], "{0}")


PAIRS = 16
"""The pairs of elements that are interleaved per iteration."""


@kernel("Concat", kinds=ANY)
def concat(cx: KernelContext) -> None:
    """Write a copy of each input into its part of the output.

    Two inputs whose elements alternate in the output are interleaved.
    """
    output, axis = cx.output(), cx.int("axis")
    if _makes_pairs(cx, output.shape, axis):
        _emit_pairs(cx)
        return
    start = 0
    for position in range(len(cx.instruction.inputs)):
        source = cx.strided_input(position)
        write = output.access(output.strides, start * output.strides[axis])
        emit_map(cx.body, source.shape, write, [source.access()], "{0}")
        start += source.shape[axis]


def _makes_pairs(cx: KernelContext, shape: tuple[int, ...], axis: int) -> bool:
    """True if elements of two dense inputs alternate in the output."""
    if len(cx.instruction.inputs) != 2 or not all(same(size, 1) for size in shape[axis + 1 :]):
        return False
    sources = [cx.strided_input(position) for position in (0, 1)]
    if not all(same(each.shape[axis], 1) for each in sources):
        return False
    return all(each.first == 0 and each.strides == row_major(each.shape) for each in sources)


def _emit_pairs(cx: KernelContext) -> None:
    """Write loops of constant length that interleave two inputs; compilers vectorize them.

    ```
    for (; i + 16 <= 100; i += 16) {
        for (ptrdiff_t l = 0; l < 16; ++l) {
            y0[2 * (i + l) + 0] = x0[i + l];
            y0[2 * (i + l) + 1] = x1[i + l];
    ```
    """
    first, second, output = cx.strided_input(0), cx.strided_input(1), cx.output()
    body, count = cx.body, first.size
    body.line("ptrdiff_t i = 0;")
    is_whole = isinstance(count, int) and count % PAIRS == 0
    for count_at_once in (PAIRS,) if is_whole else (PAIRS, 1):
        with (
            body.block(f"for (; i + {count_at_once} <= {count}; i += {count_at_once})"),
            body.loop("l", count_at_once),
        ):
            for part, source in enumerate((first, second)):
                body.line(f"{output.name}[2 * (i + l) + {part}] = {source.name}[i + l];")


def rows_of(instance: Instance) -> list[tuple[int, int]]:
    """Return the first row and the step of a Slice, for each dim of the input."""
    shape = instance.shape(0)
    rows = [(0, 1) for _ in shape]
    names = ("starts", "ends", "axes", "steps")
    for start, end, axis, step in zip(*(instance.ints(name) for name in names), strict=True):
        size = cast(Dim, shape[axis])
        if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
            rows[axis] = rows_taken(size, (start, end, step)).start, step
        else:
            rows[axis] = cast(int, first_row(size, (start, end, step))), step
    return rows


@kernel("Slice", kinds=ANY, shared=True)
def slice_(cx: KernelContext) -> None:
    """Write one loop nest that reads with an offset, and with strides times steps."""
    source, output = cx.strided_input(0), cx.output()
    pairs = list(zip(rows_of(cx), source.strides, strict=True))
    strides = tuple(step * stride for (_, step), stride in pairs)
    offset = sum(first * stride for (first, _), stride in pairs)
    read = source.access(strides, offset)
    emit_map(cx.body, output.shape, output.access(), [read], "{0}", shared=True)


@kernel(STORE, kinds=ANY)
def store(cx: KernelContext) -> None:
    """Write a copy into a box of the result; other instructions write the rest of it."""
    source, output = cx.input(0), cx.output()
    begins = zip(cx.ints("axes"), cx.ints("starts"), strict=True)
    offset = sum(output.strides[axis] * start for axis, start in begins)
    emit_map(cx.body, source.shape, output.access(output.strides, offset), [source.access()], "{0}")
