"""``smelt.SVD`` and ``smelt.SingularValues`` by one-sided rotations and by LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [
    (3, 3),
    (2, 5, 4),
    (2, 4, 5),
    (0, 3, 3),
    (2, 0, 3),
    (3, 0),
    (1, 1),
    (4, 1),
    (1, 4),
    (2, 3, 5, 5),
    (20, 30),
]


def check(a: np.ndarray, results: tuple[np.ndarray, ...], tolerance: float) -> None:
    s, u, vt = results
    count = min(a.shape[-2:])
    assert (np.diff(s) <= 0).all()
    back = (u[..., :count] * s[..., None, :]) @ vt[..., :count, :]
    np.testing.assert_allclose(back, a, atol=tolerance)
    for product in (u.swapaxes(-1, -2) @ u, vt @ vt.swapaxes(-1, -2)):
        np.testing.assert_allclose(product - np.eye(product.shape[-1]), 0 * product, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("full_matrices", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_are_orthogonal_and_multiply_back(both, shape, full_matrices, dtype):
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    ours, theirs = both("SVD", a, full_matrices=full_matrices)
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(ours[0], theirs[0], rtol=tolerance, atol=tolerance)
    for results in (ours, theirs):
        check(a, results, tolerance)
    np.testing.assert_array_equal(both("SingularValues", a)[0][0], ours[0])


SINGULAR = [np.ones((6, 4)), np.zeros((3, 3)), np.diag([3.0, 0, 2]), np.ones((2, 5)), np.eye(4)]


@pytest.mark.parametrize("a", SINGULAR)
def test_values_of_zero_and_equal_ones(both, a):
    for results in both("SVD", a, full_matrices=1):
        check(a, results, 1e-13)


def test_small_values_next_to_large_ones(both):
    a = 1 / (np.arange(8)[:, None] + np.arange(8) + 1)
    (ours, *_), (theirs, *_) = both("SVD", a)
    np.testing.assert_allclose(ours, theirs, atol=1e-15)


def test_only_non_finite_matrices_become_nan(both):
    a = np.stack(
        [np.array([[np.nan, 1], [1, 2]]), np.array([[2.0, 1], [1, 2]]), np.diag([np.inf, 1])]
    )
    for s, u, vt in both("SVD", a):
        np.testing.assert_allclose(s, [[np.nan] * 2, [3, 1], [np.nan] * 2])
        assert np.isnan(u[[0, 2]]).all()
        assert np.isnan(vt[[0, 2]]).all()
