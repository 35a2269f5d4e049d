"""Sums of depthwise convolutions in registers: blocks of output rows, or a plane as one row."""

from __future__ import annotations

from typing import cast

from smelt.loops.algorithm import (
    Algorithm,
    Apply,
    Axis,
    Buffer,
    Expression,
    Load,
    Number,
    Reduce,
    Stage,
)
from smelt.loops.operators import MULTIPLY_ADD, SUM
from smelt.loops.schedule import VECTOR, Registers, Schedule, Vector
from smelt.native.kernels.convolution.depthwise_layout import Layout
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.epilogue import Epilogue
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.types import CType
from smelt.program.run_sizes import Dim, ceil_div, lowest

ROWS = 7
"""Output rows at a time: their sums, a column of weights and a loaded vector fit 16 registers."""

TALL, TALLEST = 5, 8
"""The rows of kernels whose weights are read column by column, not all at once."""


def supports(window: Window) -> bool:
    """True if blocks of output rows pay: they share input rows, and a row fills a vector."""
    (_, kernel_h, _), (_, stride_h, stride_w) = window.kernel, window.strides
    shares = stride_h == stride_w <= 2 and window.dilations[1] == 1 < kernel_h < TALL
    return is_tall(window) or (shares and is_wide(window))


def is_tall(window: Window) -> bool:
    """True if the kernel has so many rows that blocks pay for short rows, too."""
    steps = (*window.strides[1:], window.dilations[1])
    return TALL <= window.kernel[1] <= TALLEST and steps == (1, 1, 1)


def is_wide(window: Window) -> bool:
    """True if a row of results has a whole vector, so that it may be stored at once."""
    return lowest(window.output[2]) >= MOST_LANES


def pitch_of(window: Window) -> int:
    """Return the elements between rows of results: the columns, rounded up to whole vectors."""
    return cast(int, ceil_div(window.output[2], MOST_LANES) * MOST_LANES)


def rows_of(
    type_: CType,
    window: Window,
    layout: Layout,
    to: tuple[str, tuple[Dim, int, Dim]],
    epilogue: Epilogue,
) -> tuple[Algorithm, Schedule]:
    """Return the algorithm of blocks of output rows, and the schedule that keeps a block in
    registers.

    ``to`` is the name and the shape (blocks, rows, columns) of the result. The C pointer ``from``
    is the first input row; ``k`` are the weights, ``start`` the bias.
    """
    name, (count, rows, _) = to
    axes = Axis("b", count), Axis("r", rows), Axis("q", window.output[2])
    row, column = axes[0].at * rows + axes[1].at, axes[2].at
    value = _sums(type_, window, layout, (row, column), by_column=is_tall(window))
    stage = Stage(Buffer(name, type_, to[1]), axes, value, epilogue=epilogue.of_stores(0, 0))
    return Algorithm((stage,)), (Registers("r"), Vector(name, beyond=name == "results"))


def plane_as_row(
    type_: CType, window: Window, layout: Layout, length: Dim, epilogue: Epilogue
) -> tuple[Algorithm, Schedule]:
    """Return the algorithm that computes output rows as one row of ``length``, and its schedule by
    two vectors.

    The rows lie in ``results`` at the plane's pitch. Elements in the gaps between rows are junk.
    """
    count = (length + (2 * VECTOR - 1)) // (2 * VECTOR)
    shape = (count, 2, VECTOR)
    axes = tuple(Axis(name, size) for name, size in zip("brq", shape, strict=True))
    place = (axes[0].at * 2 + axes[1].at) * VECTOR + axes[2].at
    value = _sums(type_, window, layout, (0, place), by_column=False)
    stage = Stage(Buffer("results", type_, shape), axes, value, epilogue=epilogue.of_stores(0, 0))
    return Algorithm((stage,)), (Registers("r"), Vector("results", beyond=True))


def _sums(
    type_: CType, window: Window, layout: Layout, at: tuple[Dim, Dim], *, by_column: bool
) -> Expression:
    """Return the sum of products for the output at a row and a column of the plane.

    With ``by_column``, a Reduce goes over the kernel columns, and the plane has a single phase.
    """
    (_, down, across), (_, kernel_h, kernel_w) = window.strides, window.kernel
    x, (_, step_h, step_w) = Axis("x", kernel_w), window.dilations
    image = Buffer("from", type_, (len(layout.phases), layout.rows, layout.pitch))
    weights = Buffer("k", type_, (kernel_h, kernel_w))
    start = Load(Buffer("start", type_, (1,)), (0,))
    chain: Expression = Number(0) if by_column else start
    for row in range(kernel_h):
        for column in [x.at] if by_column else range(kernel_w):
            read = row * step_h, column * step_w
            phase = 0 if by_column else layout.phases.index((read[0] % down, read[1] % across))
            index = (phase, at[0] + read[0] // down, at[1] + read[1] // across)
            chain = Apply(MULTIPLY_ADD, (Load(weights, (row, column)), Load(image, index), chain))
    return Reduce(SUM, (x,), chain, start=start) if by_column else chain
