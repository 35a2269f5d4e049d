"""``smelt.FullPivotLU`` by its body, its reference, LAPACK and in C."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt import operators
from smelt.ir import text

SHAPES = [(3, 3), (2, 4, 3), (3, 4), (2, 0, 3), (0, 3, 3), (3, 0), (1, 1), (2, 3, 5, 5)]
TYPES = {np.float32: ("float", 1e-4), np.float64: ("double", 1e-12)}


def multiplies_back(a: np.ndarray, results: tuple[np.ndarray, ...], tolerance: float) -> None:
    lu, rows, columns = results
    count = min(a.shape[-2:])
    lower = np.tril(lu[..., :count], -1) + np.eye(a.shape[-2], count)
    permuted = np.take_along_axis(a, rows[..., None], -2)
    permuted = np.take_along_axis(permuted, columns[..., None, :], -1)
    np.testing.assert_allclose(lower @ np.triu(lu[..., :count, :]), permuted, atol=tolerance)
    pivots = np.abs(np.diagonal(lu, axis1=-2, axis2=-1))
    assert (np.abs(np.triu(lu)[..., :count, :]) <= pivots[..., None] + tolerance).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_body_agrees_and_multiplies_back(both, shape, dtype):
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    results, expected = both("FullPivotLU", a)
    tolerance = TYPES[dtype][1]
    multiplies_back(a, results, tolerance)
    np.testing.assert_allclose(results[0], expected[0], atol=tolerance)
    for order, wanted in zip(results[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(order, wanted)


def test_the_rank_is_how_many_pivots_are_not_zero(both):
    a = np.outer([1, 2, 4.0], [1, -8, 2])
    for lu, rows, columns in both("FullPivotLU", a):
        assert np.diag(lu).tolist() == [-32, 0, 0]
        assert (rows[0], columns[0]) == (2, 1)


def test_a_nan_is_chosen_last(both):
    a = np.array([[np.nan, 1], [2, 3]])
    for _, rows, columns in both("FullPivotLU", a):
        assert (rows.tolist(), columns.tolist()) == ([1, 0], [1, 0])


@pytest.mark.parametrize(
    "options",
    [
        {"target": "host", "engine": "numpy"},
        pytest.param({"target": "host", "engine": "native"}, marks=pytest.mark.slow),
        pytest.param({"target": "c"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 3), (4, 2), (2, 0)], ids=str)
def test_targets_agree(options, dtype, shape):
    name, tolerance = TYPES[dtype]
    dims = ",".join(map(str, shape))
    source = f"g ({name}[{dims}] a) => (x, y, z) {{ x, y, z = smelt.FullPivotLU(a) }}"
    a = np.random.default_rng(1).normal(size=shape).astype(dtype)
    a[..., -1:] = 0  # singular, so LAPACK would change it
    expected = operators.find("smelt", "FullPivotLU").reference((a,), {})
    results = smelt.compile(text.parse(source), **options)(a)
    multiplies_back(a, results, tolerance)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, atol=tolerance)
    regular = a + np.eye(*shape[-2:], dtype=dtype)
    multiplies_back(regular, smelt.compile(text.parse(source), **options)(regular), tolerance)
