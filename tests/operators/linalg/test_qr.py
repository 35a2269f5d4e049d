"""``smelt.Geqrf``, ``smelt.Geqp3`` and ``smelt.HouseholderProduct``."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [
    (3, 3),
    (2, 4, 3),
    (3, 4),
    (2, 0, 3),
    (0, 3, 2),
    (3, 0),
    (1, 1),
    (2, 3, 5, 5),
    (5, 1),
    (1, 4),
    (30, 20),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["Geqrf", "Geqp3"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_body_packs_as_lapack(both, shape, name, dtype):
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    for ours, theirs in zip(*both(name, a), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (1, 2), (2, 2)], ids=str)
@pytest.mark.parametrize("name", ["Geqrf", "Geqp3"])
def test_a_nan_stays_in_its_column_and_in_what_its_reflection_meets(both, name, place):
    """A column that is done is not exchanged: its length is compared with no NaN."""
    a = np.array([[1.0, 5, 2], [2, 1, 7], [3, -4, 1]])
    a[place] = np.nan
    packed, taus = both(name, a)[1][:2]
    for ours, theirs in zip(*both(name, a), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    (ours,), (theirs,) = both("HouseholderProduct", packed, taus)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_columns_that_need_no_reflection(both):
    a = np.stack([np.eye(4, 3), np.zeros((4, 3)), np.diag([1e300, 1e-300, 1.0, 1.0])[:, :3]])
    for ours, theirs in zip(*both("Geqrf", a), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_long_columns_do_not_overflow(both):
    a = np.array([[1e200, 1e200], [1e200, -1e200]])
    for ours, theirs in zip(*both("Geqrf", a), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e186)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 0), (0, 3, 2), (1, 1), (30, 20)], ids=str)
def test_reflections_multiply_to_q(both, shape):
    a = np.random.default_rng(0).normal(size=shape)
    packed, taus = both("Geqrf", a)[1]
    (ours,), (theirs,) = both("HouseholderProduct", packed, taus)
    np.testing.assert_allclose(ours, theirs, atol=1e-13)
    r = np.triu(packed[..., : shape[-1], :])
    np.testing.assert_allclose(ours @ r, a, atol=1e-12)
