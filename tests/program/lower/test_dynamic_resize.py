"""The number of rows that antialias sums, if the scale is computed and the sizes are declared."""

from __future__ import annotations

import pytest
from lowered import lowered

ROWS = {(16, 4): 10, (16, 8): 6, (16, 15): 4, (16, 16): 4, (16, 17): 2, (3, 1): 14, (7, 40): 2}
"""Sizes before and after, and the rows: twice the inverse, rounded up, of the smallest scale that
gives these sizes. That is (after - 0.51) / before, or 0.49 / before for one row; at most 1 counts."""


@pytest.mark.parametrize(("before", "after"), ROWS)
def test_no_more_rows_are_summed_than_the_smallest_scale_needs(before: int, after: int) -> None:
    graph = f"""g (float[1,{before}] x, float[1] s) => (float[1,{after}] y)
        {{ y = Resize<antialias=1, axes=[1], mode="linear">(x, , s) }}"""
    operators = [step.op for step in lowered(graph, 19).instructions]
    assert operators.count("Gather") == ROWS[before, after]
