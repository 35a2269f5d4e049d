"""Indices along an axis that a Slice selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smelt.ir.symbolic_dims.bounded_sizes import rows_at_most, rows_less


class Cut(NamedTuple):
    """The bounds of a Slice along one axis, as ONNX counts them."""

    start: int
    end: int
    step: int


FIRST, LAST = -(2**63), 2**63 - 1
"""Slice ends that lie before the first row, and after the last row, of any axis."""

UNBOUNDED = (2**31 - 1, LAST)
"""Ends that exporters write for "to the end"."""


def rows_taken(size: int, cut: tuple[int, int, int]) -> range:
    """Return the indices that ``cut`` selects of an axis of ``size``, in order.

    Like NumPy, except that a backward Slice that starts before the first row starts at it.
    """
    start, end, step = cut
    start, end = (number + size if number < 0 else number for number in (start, end))
    if not size:
        return range(0)
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


LONGEST = 2**31 - 1
"""An upper bound of any dim: an end from here on lies behind the last row."""


def count_open_rows(size: str, cut: Cut) -> str | None:
    """Return the number of rows that ``cut`` takes of an axis of symbolic ``size``, as the text of
    a dim.

    A backward Slice takes as many rows as the forward one from the row after its end to the row
    after its start. None where runtimes disagree: for a step of 0, and for backward Slices that
    have the end ``UNBOUNDED`` or start at -2 or lower.
    """
    start, end, step = cut
    if step < 0:
        if start < -1 or end >= LONGEST:
            return None
        start, end = _next_row(end), _next_row(start)
    if not step:
        return None
    rows = _count_forward(size, start, end)
    return (
        rows if abs(step) == 1 or rows == "0" else f"floor(({rows} + {abs(step) - 1})/{abs(step)})"
    )


def _next_row(index: int) -> int:
    """Return ``index + 1`` as a bound of a Slice; after -1, the last row, comes the end."""
    return LONGEST if index == -1 else index + 1


def _count_forward(size: str, start: int, end: int) -> str:
    """Return ``len(range(size)[start:end])`` for a symbolic ``size``, as the text of a dim.

    With both bounds of one sign, or one of them open, it is ``Min(size, n)`` or
    ``Max(0, size - n)``, or one of the other.
    """
    from_first = start <= -LONGEST or start == 0
    if end >= LONGEST:
        if from_first:
            return size
        return rows_at_most(size, -start) if start < 0 else rows_less(size, start)
    if end <= -LONGEST or not end:
        return "0"
    if from_first:
        return rows_at_most(size, end) if end >= 0 else rows_less(size, -end)
    if (start < 0) == (end < 0):
        most, dropped = (-start, -end) if start < 0 else (end, start)
        return rows_less(rows_at_most(size, most), dropped) if start < end else "0"
    if start > 0:
        return rows_less(size, start - end)
    size_text = size if size.isidentifier() else f"({size})"
    return f"Max(0, Min({min(end, -start)}, {size}, {end - start} - {size_text}))"


def cut_of_rows(rows: range) -> Cut:
    """Return a start, end and step that select exactly ``rows``, whatever the size."""
    if not rows:
        return Cut(0, 0, 1)
    if len(rows) == 1:
        return Cut(rows[0], rows[0] + 1, 1)
    last = rows[-1]
    if rows.step > 0:
        return Cut(rows[0], last + 1, rows.step)
    end = FIRST if last == 0 else last - 1
    return Cut(rows[0], end, rows.step)


def slice_operands(cuts: dict[int, Cut]) -> tuple[Sequence[int], ...]:
    """Return starts, ends, axes and steps as operands of a Slice; without steps if all are 1."""
    axes = sorted(cuts)
    starts, ends, steps = zip(*(cuts[axis] for axis in axes), strict=True)
    operands: tuple[Sequence[int], ...] = (starts, ends, axes, steps)
    return operands if set(steps) != {1} else operands[:3]
