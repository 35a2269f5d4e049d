"""Rows of an axis, as a Slice counts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Cut: TypeAlias = tuple[int, int, int]
"""Start, end and step along one axis."""

FIRST, LAST = -(2**63), 2**63 - 1
"""Ends that lie before the first row, and behind the last one, of any axis."""

UNBOUNDED = (2**31 - 1, LAST)
"""Ends that mean the last row, forward."""


def rows_taken(size: int, cut: Cut) -> range:
    """The rows that ``cut`` takes of an axis of ``size``, in order.

    Like NumPy, except that a backward Slice that starts before the first row starts at it.
    """
    start, end, step = cut
    start, end = (number + size if number < 0 else number for number in (start, end))
    if not size:
        return range(0)
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


def cut_of_rows(rows: range) -> Cut:
    """A start, end and step that take just ``rows``, whatever the size."""
    if not rows:
        return 0, 0, 1
    if len(rows) == 1:
        return rows[0], rows[0] + 1, 1
    last = rows[-1]
    return rows[0], (FIRST if last == 0 else last - 1) if rows.step < 0 else last + 1, rows.step


def slice_operands(cuts: dict[int, Cut]) -> tuple[Sequence[int], ...]:
    """Starts, ends, axes and steps, as a Slice takes them; no steps where all are 1."""
    axes = sorted(cuts)
    starts, ends, steps = zip(*(cuts[axis] for axis in axes), strict=True)
    every: tuple[Sequence[int], ...] = (starts, ends, axes, steps)
    return every if set(steps) != {1} else every[:3]
