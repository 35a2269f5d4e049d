"""Schedules of poolings: the rows of a window are combined first, then its columns.

The combined rows are a stage in an array: ``row``, of one row of results, or ``kept``, of a band of
rows. The stage ``counted`` of a mean has the number of columns that each window covers.
"""

from __future__ import annotations

from smelt.loops.algorithm import Algorithm
from smelt.loops.operators import Monoid
from smelt.loops.schedule import (
    ComputeAt,
    Directive,
    Doubling,
    Outermost,
    Schedule,
    Separate,
    Split,
    Unroll,
    Vector,
)
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.vector import MOST_LANES
from smelt.program.run_sizes import Dim, Size, highest, larger, smaller

ROW, BAND = 160, 2048
"""The most elements of ``row``, without vectors, and of ``kept``, with them."""

MOST_COLUMNS = 16
"""The most columns of a window that become one expression."""


def plain_schedule(window: Window) -> Schedule:
    """Return the rows of a window combined first, then its columns, if a row fits the stack."""
    reach = _reach(window)
    columns = min(highest(window.output[2]), (ROW - 1 - reach) // window.strides[2] + 1)
    if not window.flat or window.kernel[2] > MOST_COLUMNS or columns < 1:
        return ()
    size = (columns - 1) * window.strides[2] + reach + 1
    row = (Separate("k2", "row", "x"), Unroll("k2"), ComputeAt("row", "q", size))
    rows = (Outermost("row"),) if window.kernel[1] > 1 else ()
    return (*row, *rows, Split("q", columns))


def vector_schedule(window: Window, monoid: Monoid, algorithm: Algorithm) -> Schedule:
    """Return ``plain_schedule`` in vectors, over bands of rows; () if a row or a sum is too long.

    A maximum at stride 1 is taken by ``Doubling``: passes over ``kept`` combine windows of 1, 3, 9,
    ... columns, two or three narrow ones to a wide one. Stride 2 reads even and odd columns.

    ``kept`` needs room after its last row. The last vector of results reads beyond that row: one
    vector at stride 1, two at stride 2. A window's last column is ``_reach`` further on.
    """
    step, can_unroll = window.strides[2], window.kernel[2] <= MOST_COLUMNS
    pitch = (window.output[2] - 1) * step + _reach(window) + 1
    if highest(pitch) > BAND or not (can_unroll or monoid.repeats):
        return ()
    directives: list[Directive] = [Separate("k2", "kept", "x")]
    doubles = step == 1 and monoid.repeats
    if doubles:
        directives.append(Doubling("k2", "kept"))
    elif can_unroll:
        directives.append(Unroll("k2"))
    size, axes = highest(pitch), algorithm.result.axes
    if len(axes) > 2:
        band = larger(1, smaller(window.output[1], BAND // larger(1, pitch)))
        elements: Dim = band * pitch
        size = BAND if isinstance(elements, Size) else elements  # an array has a constant size
        directives.append(Split("h", band))
    size += 2 * MOST_LANES + _reach(window)
    directives += [ComputeAt("kept", axes[-2].name, size), Vector("kept")]
    if doubles or (can_unroll and step <= 2):
        directives.append(Vector(algorithm.result.to.name, beyond=True))
    if len(algorithm.stages) > 1:
        directives.append(ComputeAt("counted", "", BAND + MOST_LANES))
    return tuple(directives)


def _reach(window: Window) -> int:
    """Return the distance from the first to the last column of a window: 2 for 3 columns."""
    return (window.kernel[2] - 1) * window.dilations[2]
