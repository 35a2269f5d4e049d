"""``smelt.ComplexLU``: its body beside the reference."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize(
    "shape", [(2, 3, 3), (4, 2), (2, 4), (0, 3, 3), (2, 0, 0), (1, 1)], ids=str
)
def test_factors_make_the_rows_in_their_order(both, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    re, im = rng.normal(size=shape), rng.normal(size=shape)
    rows, columns = shape[-2:]
    count = min(rows, columns)
    for x, y, _, order in both("ComplexLU", re, im):
        packed = x + 1j * y
        lower = np.tril(packed, -1)[..., :count] + np.eye(rows, count)
        made = lower @ np.triu(packed)[..., :count, :]
        wanted = np.take_along_axis(re + 1j * im, order[..., None].astype(int), -2)
        np.testing.assert_allclose(made, wanted, atol=1e-12)


def test_the_pivot_is_the_largest_sum_of_both_parts_and_0_leaves_its_column(both) -> None:
    re = np.array([[[3.0, 1], [2, 1]], [[0, 1], [0, 2]]])
    im = np.array([[[0.0, 1], [2, 0]], [[0, 1], [0, 0]]])
    for x, y, pivots, order in both("ComplexLU", re, im):
        assert pivots.tolist() == [[1, 1], [0, 1]]
        assert order.tolist() == [[1, 0], [0, 1]]
        np.testing.assert_allclose(x[0, 1, 0] + 1j * y[0, 1, 0], 3 / (2 + 2j))
        np.testing.assert_array_equal(x[1], re[1])
        np.testing.assert_array_equal(y[1], im[1])
