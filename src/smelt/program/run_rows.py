"""The rows that a Slice takes of an axis of run-time size."""

from __future__ import annotations

from typing import TypeAlias

from smelt.program.run_sizes import Dim, Size, ceil_div, highest, larger, lowest, smaller

Cut: TypeAlias = tuple[Dim, Dim, int]
"""Start, end and step of a Slice."""


def first_row(size: Dim, cut: Cut) -> Dim:
    """Return the first row taken, as ``smelt.ir.rows.rows_taken`` does for numbers."""
    start, _, step = cut
    return smaller(larger(_counted(start, size), 0), size if step > 0 else size - 1)


def count_rows(size: Dim, cut: Cut) -> Dim:
    """Return the number of rows taken."""
    _, end, step = cut
    counted = _counted(end, size)
    first = first_row(size, cut)
    if step > 0:
        return ceil_div(larger(smaller(larger(counted, 0), size) - first, 0), step)
    return ceil_div(larger(first - smaller(larger(counted, -1), size - 1), 0), -step)


def _counted(place: Dim, size: Dim) -> Dim:
    """Return ``place`` as a non-negative index: itself, or plus ``size`` if it is negative."""
    if lowest(place) >= 0:
        return place
    from_back = place + size
    if highest(place) < 0:
        return from_back
    ends = (min(lowest(from_back), 0), max(highest(from_back), highest(place)))
    return Size.named(f"({place} < 0 ? {from_back} : {place})", *ends)
