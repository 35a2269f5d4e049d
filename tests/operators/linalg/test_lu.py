"""``smelt.LU`` and ``smelt.PivotsToPermutation``."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [(3, 3), (2, 4, 3), (3, 4), (2, 0, 3), (0, 3, 3), (3, 0), (1, 1), (2, 3, 5, 5), (30, 30)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_body_agrees_and_multiplies_back(both, shape, dtype):
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    (lu, pivots, permutation), expected = both("LU", a)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(lu, expected[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(pivots, expected[1])
    np.testing.assert_array_equal(permutation, expected[2])
    count = min(shape[-2:])
    lower = np.tril(lu[..., :count], -1) + np.eye(shape[-2], count)
    permuted = np.take_along_axis(a, permutation[..., None], -2)
    np.testing.assert_allclose(lower @ np.triu(lu[..., :count, :]), permuted, atol=tolerance)


def test_a_zero_pivot_leaves_its_column(both):
    a = np.array([[0, 0, 1], [0, 0, 2], [0, 3, 4.0]])
    for lu, pivots, permutation in both("LU", a):
        np.testing.assert_array_equal(lu, [[0, 0, 1], [0, 3, 4], [0, 0, 2]])
        assert pivots.tolist() == [0, 2, 2]
        assert permutation.tolist() == [0, 2, 1]


@pytest.mark.parametrize("name", ["LU", "ComplexLU"])
def test_a_nan_is_a_pivot_on_the_diagonal_alone_and_reaches_what_it_meets(both, name):
    nan = np.nan
    a = np.array([[[1, 2], [nan, 3]], [[nan, 2], [1, 3]], [[1, nan], [2, 3]], [[nan, 1], [nan, 2]]])
    for results in both(name, *[a, np.zeros_like(a)][: 1 + (name != "LU")]):
        lu, pivots, permutation = results[0], *results[-2:]
        assert pivots.tolist() == [[0, 1], [0, 1], [1, 1], [0, 1]]
        assert permutation.tolist() == [[0, 1], [0, 1], [1, 0], [0, 1]]
        assert np.isnan(lu[:, 1, 1]).all()


def test_swaps_one_after_the_other(both):
    pivots = np.array([[2, 2, 3], [0, 1, 2]], np.int32)
    for (permutation,) in both("PivotsToPermutation", pivots, permutation_size=5):
        assert permutation.tolist() == [[2, 0, 3, 1, 4], [0, 1, 2, 3, 4]]
