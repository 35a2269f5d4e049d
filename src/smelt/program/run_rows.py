"""Which rows a Slice takes of an axis whose size each run has of its own."""

from __future__ import annotations

from smelt.program.run_sizes import Dim, ceil_div, larger, smaller

Cut = tuple[int, int, int]
"""A start, an end and a step, as a Slice takes them."""


def first_row(size: Dim, cut: Cut) -> Dim:
    """The row that comes first, as ``smelt.ir.rows.rows_taken`` has it of a number."""
    start, _, step = cut
    counted = start + size if start < 0 else start
    return smaller(larger(counted, 0), size if step > 0 else size - 1)


def count_rows(size: Dim, cut: Cut) -> Dim:
    """How many rows are taken."""
    _, end, step = cut
    counted = end + size if end < 0 else end
    first = first_row(size, cut)
    if step > 0:
        return ceil_div(larger(smaller(larger(counted, 0), size) - first, 0), step)
    return ceil_div(larger(first - smaller(larger(counted, -1), size - 1), 0), -step)
