"""The rows that a Slice takes of an axis of run-time size."""

from __future__ import annotations

from typing import TypeAlias

from smelt.program.run_sizes import Dim, Size, ceil_div, highest, larger, lowest, smaller

Slicing: TypeAlias = tuple[Dim, Dim, int]
"""Start, end and step of a Slice."""


def first_row(size: Dim, slicing: Slicing) -> Dim:
    """Return the first row that a Slice takes, as ``smelt.ir.rows.rows_taken`` does for numbers."""
    start, _, step = slicing
    return smaller(larger(_from_front(start, size), 0), size if step > 0 else size - 1)


def count_rows(size: Dim, slicing: Slicing) -> Dim:
    """Return the number of rows that a Slice takes."""
    _, end, step = slicing
    stop = _from_front(end, size)
    first = first_row(size, slicing)
    if step > 0:
        return ceil_div(larger(smaller(larger(stop, 0), size) - first, 0), step)
    return ceil_div(larger(first - smaller(larger(stop, -1), size - 1), 0), -step)


def _from_front(index: Dim, size: Dim) -> Dim:
    """Return ``index`` counted from the front: plus ``size`` if it is negative."""
    if lowest(index) >= 0:
        return index
    from_back = index + size
    if highest(index) < 0:
        return from_back
    bounds = (min(lowest(from_back), 0), max(highest(from_back), highest(index)))
    return Size.named(f"({index} < 0 ? {from_back} : {index})", *bounds)
