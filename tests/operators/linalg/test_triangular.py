"""The bodies of ``smelt.Cholesky`` and ``smelt.TriangularSolve`` against their references."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

FLAGS = list(itertools.product([0, 1], repeat=4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 0, 0), (0, 2, 2), (3, 5, 5)], ids=str)
def test_cholesky(both, shape, lower, dtype):
    root = np.random.default_rng(0).normal(size=shape)
    a = root @ root.swapaxes(-1, -2) + np.eye(shape[-1])
    if shape == (3, 5, 5):
        a[1, 2, 2] = -1
    (ours,), (theirs,) = both("Cholesky", a.astype(dtype), lower=lower)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("flags", FLAGS)
def test_triangular_solve(both, flags):
    names = ("left_side", "lower", "transpose_a", "unit_diagonal")
    attributes = dict(zip(names, flags, strict=True))
    rng = np.random.default_rng(0)
    for batch, m, n in (((2,), 4, 3), ((), 0, 2), ((), 1, 1), ((2,), 3, 0), ((0,), 3, 2)):
        a = rng.normal(size=(*batch, m, m)) + 4 * np.eye(m)
        b = rng.normal(size=(*batch, m, n) if attributes["left_side"] else (*batch, n, m))
        (ours,), (theirs,) = both("TriangularSolve", a, b, **attributes)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)


def test_only_one_triangle_is_read(both):
    a = np.where(np.tri(3, dtype=bool), 4 * np.eye(3) + 1, np.nan)
    assert np.isfinite(both("Cholesky", a, lower=1)[0][0]).all()
    (x,), _ = both("TriangularSolve", a, np.ones((3, 1)))
    assert np.isfinite(x).all()


def test_a_zero_on_the_diagonal_divides(both):
    for (x,) in both("TriangularSolve", np.diag([2.0, 0.0]), np.array([[1.0], [1.0]])):
        np.testing.assert_array_equal(x, [[0.5], [np.inf]])
