"""Rounding of weights that are scaled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt.passes.convolution.output_channels import round_product, round_to

TYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("number", [1.1, 2.25])
@given(
    weight=st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=6),
    exponent=st.integers(-60, 30),
)
def test_it_is_what_rounding_the_exact_product_gives(
    dtype: type, number: float, weight: list[float], exponent: int
) -> None:
    array = np.asarray(weight).astype(dtype).reshape(-1, 1)
    # Of 1.1 and 2.25, float32 has only the latter: its products are exact in float64.
    factor = np.asarray([[number, -3.0]]) * 2.0**exponent
    wide = np.repeat(array, 2, axis=1)
    expected = round_to(wide.astype(np.float64) * factor, np.dtype(dtype))
    found = round_product(wide, factor, np.dtype(dtype))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("number", [np.nan, np.inf, 3e38, 1e-44])
def test_what_overflows_vanishes_or_is_no_number_is_refused(number: float) -> None:
    array = np.full((2, 2), number, np.float32)
    assert round_product(array, np.asarray([[3.3, 0.01]]), np.dtype(np.float32)) is None


@pytest.mark.parametrize("factor", [1.5, 1.1])
def test_one_element_of_many_may_be_small(factor: float) -> None:
    array = np.ones((3, 1 << 16), np.float32)
    array[2, 77] = np.finfo(np.float32).smallest_normal / 2
    found = round_product(array, np.full((3, 1), factor), np.dtype(np.float32))
    exact = array.astype(np.float64) * factor
    assert np.array_equal(found, exact.astype(np.float32))
    array[2, 77] = np.finfo(np.float32).smallest_subnormal
    assert round_product(array, np.full((3, 1), factor), np.dtype(np.float32)) is None


def test_zeros_stay_and_nothing_is_nothing() -> None:
    zeros, none = np.zeros((2, 2), np.float32), np.zeros((0, 2), np.float32)
    factor = np.asarray([[3.3, 0.01]])
    assert np.array_equal(round_product(zeros, factor, np.dtype(np.float32)), zeros)
    assert round_product(none, factor, np.dtype(np.float32)).shape == (0, 2)


def test_a_weight_that_is_a_view_keeps_its_order() -> None:
    view = np.arange(6, dtype=np.float32).reshape(2, 3).T
    found = round_product(view, np.asarray([[2.0, 3.0]]), np.dtype(np.float32))
    assert np.array_equal(found, view * [[2, 3]])
