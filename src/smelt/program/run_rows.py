"""Which rows a Slice takes of an axis whose size each run has of its own."""

from __future__ import annotations

from typing import TypeAlias

from smelt.program.run_sizes import Dim, Size, ceil_div, highest, larger, lowest, smaller

Cut: TypeAlias = tuple[Dim, Dim, int]
"""A start, an end and a step, as a Slice takes them."""


def first_row(size: Dim, cut: Cut) -> Dim:
    """The row that comes first, as ``smelt.ir.rows.rows_taken`` has it of a number."""
    start, _, step = cut
    return smaller(larger(_counted(start, size), 0), size if step > 0 else size - 1)


def count_rows(size: Dim, cut: Cut) -> Dim:
    """How many rows are taken."""
    _, end, step = cut
    counted = _counted(end, size)
    first = first_row(size, cut)
    if step > 0:
        return ceil_div(larger(smaller(larger(counted, 0), size) - first, 0), step)
    return ceil_div(larger(first - smaller(larger(counted, -1), size - 1), 0), -step)


def _counted(place: Dim, size: Dim) -> Dim:
    """``place`` counted from the front, which it is already unless it is below 0."""
    if lowest(place) >= 0:
        return place
    from_back = place + size
    if highest(place) < 0:
        return from_back
    ends = (min(lowest(from_back), 0), max(highest(from_back), highest(place)))
    return Size.named(f"({place} < 0 ? {from_back} : {place})", *ends)
