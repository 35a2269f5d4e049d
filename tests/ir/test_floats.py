"""Distances in ulp."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt.ir.floats import is_close, ulp_distance

DTYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours_are_one_apart(dtype: type) -> None:
    one = np.asarray([1.0, -1.0, 0.0], dtype)
    after = np.nextafter(one, np.asarray(2.0, dtype))
    np.testing.assert_array_equal(ulp_distance(one, after), [1, 1, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_infinities_and_nans(dtype: type) -> None:
    a = np.asarray([0.0, np.inf, np.nan, np.nan], dtype)
    b = np.asarray([-0.0, np.inf, np.nan, 1.0], dtype)
    np.testing.assert_array_equal(ulp_distance(a, b), [0, 0, 0, np.inf])


@given(st.floats(width=32), st.floats(width=32))
def test_symmetric_and_zero_only_for_equal_numbers(a: float, b: float) -> None:
    x, y = np.float32([a]), np.float32([b])
    assert ulp_distance(x, y) == ulp_distance(y, x)
    same = (a == b) or (np.isnan(a) and np.isnan(b))
    assert (ulp_distance(x, y)[0] == 0) == same


def test_far_apart_doubles() -> None:
    big = np.float64([np.finfo(np.float64).max])
    assert ulp_distance(big, -big)[0] > 2.0**63


def test_closeness_follows_the_dtype() -> None:
    assert is_close(np.float16(1.4141), 2**0.5, 1)
    assert not is_close(np.float64(1.4141), 2**0.5, 1)
    assert not is_close(np.float32(1e-12), 0.0, 1)
    assert is_close(np.float32(-0.0), 0.0, 0)
    assert is_close(np.int64(2), 2.0, 0)
    assert not is_close(np.int64(2), 2.5, 100)
