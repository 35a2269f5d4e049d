"""``smelt.Eigh`` by Jacobi's rotations and by LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [(3, 3), (2, 4, 4), (2, 0, 0), (0, 3, 3), (1, 1), (2, 2), (2, 3, 5, 5), (31, 31)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_vectors_are_orthogonal_and_belong_to_the_values(both, shape, lower, dtype):
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    symmetric = triangle + triangle.swapaxes(-1, -2) - triangle * np.eye(shape[-1])
    (_, values), (_, expected) = results = both("Eigh", a, lower=lower)
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
    for vectors, values in results:
        np.testing.assert_allclose(
            symmetric @ vectors, vectors * values[..., None, :], atol=10 * tolerance
        )
        product = vectors.swapaxes(-1, -2) @ vectors
        np.testing.assert_allclose(product - np.eye(shape[-1]), 0 * a, atol=tolerance)


@pytest.mark.parametrize(
    "a", [np.ones((6, 6)), np.eye(5), np.zeros((4, 4)), np.diag([3.0, 1, 1, 2])]
)
def test_equal_values(both, a):
    (vectors, values), (_, expected) = both("Eigh", a)
    np.testing.assert_allclose(values, expected, atol=1e-14)
    np.testing.assert_allclose((vectors * values) @ vectors.T, a, atol=1e-14)


def test_only_non_finite_matrices_become_nan(both):
    a = np.stack(
        [np.array([[np.nan, 1], [1, 2]]), np.array([[2.0, 1], [1, 2]]), np.diag([np.inf, 1])]
    )
    for vectors, values in both("Eigh", a):
        assert np.isnan(vectors[[0, 2]]).all()
        np.testing.assert_allclose(values, [[np.nan] * 2, [1, 3], [np.nan] * 2])


def test_large_numbers_do_not_overflow(both):
    for _, values in both("Eigh", np.array([[1e200, 1e199], [1e199, 1e-200]])):
        np.testing.assert_allclose(
            values, [-9.901951359278483e197, 1.0099019513592785e200], rtol=1e-12
        )
