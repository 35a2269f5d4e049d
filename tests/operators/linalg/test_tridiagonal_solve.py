"""``smelt.TridiagonalSolve`` against the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

SIZES = [
    ((), 4, 2),
    ((3,), 5, 1),
    ((), 1, 2),
    ((2,), 0, 3),
    ((0,), 3, 1),
    ((), 2, 1),
    ((2, 2), 20, 2),
]


@pytest.mark.parametrize(("batch", "n", "k"), SIZES)
def test_solutions_multiply_back(both, batch, n, k):
    rng = np.random.default_rng(0)
    lower, diagonal, upper = rng.normal(size=(3, *batch, n))
    b = rng.normal(size=(*batch, n, k))
    i = np.arange(n)
    a = np.zeros((*batch, n, n))
    a[..., i, i], a[..., i[1:], i[:-1]], a[..., i[:-1], i[1:]] = (
        diagonal,
        lower[..., 1:],
        upper[..., :-1],
    )
    for (x,) in both("TridiagonalSolve", lower, diagonal, upper, b):
        np.testing.assert_allclose(a @ x, b, atol=1e-10)


def test_a_zero_on_the_diagonal_is_pivoted(both):
    lower, diagonal, upper = np.array([0.0, 1]), np.array([0.0, 0]), np.array([1.0, 0])
    for (x,) in both("TridiagonalSolve", lower, diagonal, upper, np.array([[2.0], [3]])):
        np.testing.assert_array_equal(x, [[3], [2]])


def test_a_singular_matrix_is_nan_alone_in_its_batch(both):
    zero = np.zeros((2, 3))
    diagonal = np.array([[1.0, 0, 1], [1, 2, 4]])
    for (x,) in both("TridiagonalSolve", zero, diagonal, zero, np.ones((2, 3, 1))):
        np.testing.assert_array_equal(x[..., 0], [[np.nan] * 3, [1, 0.5, 0.25]])


def test_ends_of_the_outer_diagonals_are_not_read(both):
    lower, upper = np.array([np.nan, 0, 0]), np.array([0, 0, np.nan])
    for (x,) in both("TridiagonalSolve", lower, np.ones(3), upper, np.ones((3, 1))):
        np.testing.assert_array_equal(x, np.ones((3, 1)))
