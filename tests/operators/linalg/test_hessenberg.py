"""``smelt.Hessenberg`` and ``smelt.Tridiagonal``."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [(3, 3), (2, 4, 4), (0, 0), (2, 0, 0), (0, 3, 3), (1, 1), (2, 2), (2, 3, 5, 5), (40, 40)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_form_of_hessenberg_is_packed_as_lapack_packs_it(both, shape, dtype):
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    agree(both("Hessenberg", a), 1e-3 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("lower", [1, 0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_tridiagonal_form_reads_one_triangle(both, shape, lower):
    a = np.random.default_rng(0).normal(size=shape)
    agree(both("Tridiagonal", a, lower=lower), 1e-10)


def test_tridiagonal_forms_of_float32(both):
    a = np.random.default_rng(0).normal(size=(2, 6, 6)).astype(np.float32)
    agree(both("Tridiagonal", a), 1e-4)


def test_hessenberg_matrices_stay_unchanged(both):
    a = np.stack([np.zeros((4, 4)), np.eye(4), np.triu(np.ones((4, 4)), -1)])
    for ours, theirs in zip(*both("Hessenberg", a), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_matrix_that_is_not_finite_leaves_others_of_its_batch_alone(both):
    a = np.random.default_rng(0).normal(size=(3, 4, 4))
    a[0, 2, 0], a[1, 3, 1] = np.nan, np.inf
    (packed, taus), expected = both("Hessenberg", a)
    assert np.isnan(packed[:2, 1:, 1:]).any(axis=(1, 2)).all()
    agree(((packed[2:], taus[2:]), [part[2:] for part in expected]), 1e-12)


def agree(results, tolerance):
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
