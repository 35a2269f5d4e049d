"""Scaled weights are rounded once, and refused if they lose too much."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.passes.convolution.rounded_product import BLOCK, round_product, round_to

TYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@settings(deadline=None)
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
def test_non_finite_and_underflowing_products_are_refused(number: float) -> None:
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


LAYOUTS = {
    "rows": (lambda a: a, (0,)),
    "columns": (lambda a: a, (2,)),
    "between": (lambda a: a, (1,)),
    "channels last in memory": (lambda a: a.transpose(2, 0, 1), (0,)),
    "columns in memory": (lambda a: a.transpose(2, 1, 0), (2,)),
    "every second row": (lambda a: a[::2], (0,)),
    "back to front": (lambda a: a[::-1], (1,)),
    "two axes": (lambda a: a, (0, 2)),
    "one number": (lambda a: a, ()),
    "a long row": (lambda a: a.reshape(1, 1, -1), (1,)),
}


@pytest.mark.parametrize(("view", "axes"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_products_are_the_same_in_every_layout(
    view: Callable[[np.ndarray], np.ndarray], axes: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    array = view(rng.uniform(0.5, 2, (6, 35, BLOCK // 64)).astype(np.float32))
    shape = [size if axis in axes else 1 for axis, size in enumerate(array.shape)]
    factor = rng.uniform(0.5, 2, shape)
    found = round_product(array, factor, np.dtype(np.float32))
    assert found is not None
    assert found.shape == array.shape
    assert np.array_equal(found, (array.astype(np.float64) * factor).astype(np.float32))
    last = array.copy(order="K")
    last[-1, -1, -1] = np.nan
    assert round_product(last, factor, np.dtype(np.float32)) is None


@pytest.mark.parametrize("factor", [np.float64(1.1), np.full(3, 1.1), np.full((1, 3), 1.1)])
def test_factors_of_fewer_dims_are_broadcast(factor: np.ndarray) -> None:
    array = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    found = round_product(array, np.asarray(factor), np.dtype(np.float32))
    assert np.array_equal(found, (array.astype(np.float64) * 1.1).astype(np.float32))
