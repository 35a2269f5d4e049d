"""Comparing outputs: dtype and shape first, then elements, with NaN, infinities and zeros."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.check.compare import Tolerance, compare
from smelt.ir.floats import spacing, ulp_distance

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def one(expected, actual, tolerance=Tolerance(), **options):  # noqa: B008 - frozen
    (found,) = compare([np.asarray(expected)], [np.asarray(actual)], tolerance, **options)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
def test_ulp_counts_representable_numbers(dtype):
    info = ml_dtypes.finfo(dtype)
    one_up = dtype(1) + dtype(info.eps)
    tiny = dtype(info.smallest_subnormal)
    a = np.array([1, 0, -tiny, 0, 1, info.max], dtype)
    b = np.array([one_up, tiny, tiny, -0.0, 1, np.inf], dtype)
    assert ulp_distance(a, b).tolist() == [1, 1, 2, 0, 0, 1]


@given(st.floats(width=32), st.floats(width=32))
@settings(deadline=None, max_examples=200)
def test_ulp_is_symmetric_and_zero_only_for_equals(a, b):
    left, right = np.float32([a]), np.float32([b])
    distance = ulp_distance(left, right)
    assert distance == ulp_distance(right, left)
    assert (distance == 0) == (left == right or bool(np.isnan(left) and np.isnan(right)))


@given(st.floats(width=32, allow_nan=False, min_value=-(2.0**127), max_value=2.0**127))
@settings(deadline=None, max_examples=200)
def test_spacing_is_numpys(x):
    value = np.float32([x])
    assert spacing(value, value.dtype) == np.spacing(np.abs(value)).astype(np.float64)


EQUAL = {
    "nan": (np.float32([np.nan]), np.float32([np.nan])),
    "infinity": (np.float32([np.inf, -np.inf]), np.float32([np.inf, -np.inf])),
    "zeros": (np.float32([0.0]), np.float32([-0.0])),
    "empty": (np.zeros((0, 3)), np.zeros((0, 3))),
    "scalar": (np.float32(1), np.float32(1)),
    "text": (np.array(["a", "b"], object), np.array(["a", "b"], object)),
    "complex": (np.complex64([1 + 2j]), np.complex64([1 + 2j])),
    "int4": (np.array([1, -8]).astype(ml_dtypes.int4), np.array([1, -8]).astype(ml_dtypes.int4)),
}


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL.keys())
def test_equal(pair):
    assert one(*pair).ok


DIFFERENT = {
    "nan for a number": (np.float32([1]), np.float32([np.nan])),
    "number for nan": (np.float32([np.nan]), np.float32([1])),
    "sign of infinity": (np.float32([np.inf]), np.float32([-np.inf])),
    "largest for infinity": (np.float32([np.inf]), np.float32([3.4028235e38])),
    "dtype": (np.float32([1]), np.float64([1])),
    "shape": (np.float32([1]), np.float32([[1]])),
    "integer": (np.int64([2**53]), np.int64([2**53 + 1])),
    "text": (np.array(["a"], object), np.array(["b"], object)),
    "imaginary part": (np.complex64([1 + 2j]), np.complex64([1 + 3j])),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_different_even_with_a_generous_ulp(pair):
    found = one(*pair, Tolerance(ulp=0.5))
    assert not found.ok
    assert str(found)


def test_infinity_is_never_within_a_tolerance():
    assert not one(np.float32([np.inf]), np.float32([1]), Tolerance(1e30, 1e30, 1e30)).ok


@pytest.mark.parametrize(
    ("tolerance", "ok"),
    [
        (Tolerance(ulp=1), True),
        (Tolerance(ulp=0), False),
        (Tolerance(rtol=1e-6), True),
        (Tolerance(atol=1e-6), True),
        (Tolerance(atol=1e-9), False),
    ],
)
def test_any_bound_admits(tolerance, ok):
    x = np.float32([1])
    assert one(x, np.nextafter(x, np.float32(2)), tolerance).ok is ok


def test_signed_zero_counts_only_if_asked():
    assert not one(np.float32([0.0]), np.float32([-0.0]), Tolerance(signed_zero=True)).ok


def test_the_worst_element_is_named():
    found = one(np.float32([[1, 2], [3, 4]]), np.float32([[1, 2], [3, 7]]))
    assert found.where == (1, 1)
    assert (found.expected, found.actual, found.failed) == ("4.0", "7.0", 1)
    assert found.error == 3


def test_the_largest_error_is_that_of_one_element():
    """The ulp of a number near 0 and the absolute error of a large number belong to different
    elements.
    """
    expected = np.float32([1e-6, 1000])
    actual = np.float32([1.1e-6, 1000.5])
    found = one(expected, actual, slack=[np.array([1e-4, 1.0])], margin=10)
    assert found.ok
    assert (found.where, found.expected, found.actual) == ((1,), "1000.0", "1000.5")
    assert (found.error, found.ulp, found.allowed) == (0.5, 5.0, 10)
    assert str(found) == "output '0': largest error 0.5 (5 ulp, 10 allowed)"


def test_without_a_measure_an_ulp_is_the_last_place_of_the_element():
    found = one(np.float32([1, 1024]), np.float32([1, 1024.0625]), Tolerance(ulp=1000))
    assert (found.ulp, found.error, found.allowed) == (512, 0.0625, 0)


def test_slack_admits_elements_and_leaves_out_infinite_ones():
    expected, actual = np.float32([1, 2, 3]), np.float32([1.1, 99, 3])
    found = one(expected, actual, slack=[np.array([0.2, np.inf, 0])])
    assert found.ok
    assert found.unstable == 1
    indices = one(np.int64([1, 2]), np.int64([1, 3]), slack=[np.array([0, np.inf])])
    assert indices.ok
    assert indices.unstable == 1


def test_lists_of_tensors_compare_one_by_one():
    a, b = [np.float32([1]), np.float32([2])], [np.float32([1]), np.float32([3])]
    assert [item.ok for item in compare([a], [b])] == [True, False]
    assert not compare([a], [a[:1]])[0].ok
    assert not compare([a], [None])[0].ok
    assert compare([None], [None])[0].ok


def test_another_number_of_outputs_is_a_difference():
    assert not compare([np.float32([1])], [])[0].ok
