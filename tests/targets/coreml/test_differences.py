"""Where MIL differs from ONNX: each row writes a form with ONNX's meaning."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, constant, operations, outside, types, written

F = np.float32
INTEGERS = np.array([-7, 7, -7, 7, -6, 0, 5], np.int64)
DIVISORS = np.array([3, 3, -3, -3, 3, 5, -7], np.int64)


def unary(node: str, dtype: str = "float") -> str:
    return f"g ({dtype}[3] x) => ({dtype}[3] y) {{ y = {node} }}"


ROWS = {
    "integer division rounds towards 0": (
        "g (int64[7] x, int64[7] y) => (int64[7] z) { z = Div(x, y) }",
        (INTEGERS, DIVISORS),
        np.array([-2, 2, 2, -2, -2, 0, 0]),
    ),
    "mod has the sign of the divisor": (
        "g (int64[7] x, int64[7] y) => (int64[7] z) { z = Mod(x, y) }",
        (INTEGERS, DIVISORS),
        np.mod(INTEGERS, DIVISORS),
    ),
    "fmod has the sign of the dividend": (
        "g (int64[7] x, int64[7] y) => (int64[7] z) { z = Mod <fmod = 1> (x, y) }",
        (INTEGERS, DIVISORS),
        np.fmod(INTEGERS, DIVISORS),
    ),
    "negative indices count from the end": (
        "g (float[4] x, int64[3] i) => (float[3] y) { y = Gather(x, i) }",
        (np.array([1, 2, 3, 4], F), np.array([-1, 0, -4], np.int64)),
        np.array([4, 1, 1], F),
    ),
    "the reciprocal has no epsilon": (
        unary("Reciprocal(x)"),
        (np.array([2, -4, 8], F),),
        np.array([0.5, -0.25, 0.125], F),
    ),
    "the logarithm has no epsilon": (
        unary("Log(x)"),
        (np.array([1, 0, 2], F),),
        np.log(np.array([1, 1, 2], F)) + np.array([0, -np.inf, 0], F),
    ),
    "a base of 2 and an exponent of 0": (
        "g (float[3] x) => (float[3] y) <float two = {2.0}> { y = Pow(two, x) }",
        (np.array([0, -1, 3], F),),
        np.array([1, 0.5, 8], F),
    ),
    "a square of a negative number": (
        "g (float[3] x) => (float[3] y) <float two = {2.0}> { y = Pow(x, two) }",
        (np.array([-3, 0, 1e-3], F),),
        np.array([9, 0, 1e-6], F),
    ),
    "the last of equal maxima": (
        "g (float[2,3] x) => (int64[2] y) { y = ArgMax <axis = 1, keepdims = 0, select_last_index = 1> (x) }",
        (np.array([[5, 5, 1], [0, 2, 2]], F),),
        np.array([1, 2]),
    ),
    "a relu of integers": (
        unary("Relu(x)", "int32"),
        (np.array([-3, 0, 4], np.int32),),
        np.array([0, 0, 4]),
    ),
    "a scalar input": (
        "g (float x) => (float y) { y = Exp(x) }",
        (np.array(0, F),),
        np.array([1], F),
    ),
    "pads of integers": (
        "g (int64[2] x) => (int64[5] y) <int64[2] p = {1, 2}, int64 v = {9}> { y = Pad(x, p, v) }",
        (np.array([1, 2], np.int64),),
        np.array([9, 1, 2, 9, 9]),
    ),
    "a negative step": (
        "g (float[5] x) => (float[2] y) <int64[1] s = {-2}, int64[1] e = {0}, int64[1] a = {0}, int64[1] t = {-2}> { y = Slice(x, s, e, a, t) }",
        (np.arange(5, dtype=F),),
        np.array([3, 1], F),
    ),
    "reflection along the first axis": (
        'g (float[3,2] x) => (float[5,2] y) <int64[4] p = {1, 0, 1, 0}> { y = Pad <mode = "reflect"> (x, p) }',
        (np.arange(6, dtype=F).reshape(3, 2),),
        np.pad(np.arange(6, dtype=F).reshape(3, 2), ((1, 1), (0, 0)), "reflect"),
    ),
    "an equality of bools": (
        "g (bool[4] x, bool[4] y) => (bool[4] z) { z = Equal(x, y) }",
        (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)),
        np.array([1, 0, 0, 1], bool),
    ),
    "a gather of bools": (
        "g (bool[2] x, int64[3] i) => (bool[3] y) { y = Gather(x, i) }",
        (np.array([0, 1], bool), np.array([1, 0, 1], np.int64)),
        np.array([1, 0, 1], bool),
    ),
    "asinh near 0 and far": (
        unary("Asinh(x)"),
        (np.array([1e-4, -3, 1e6], F),),
        np.arcsinh(np.array([1e-4, -3, 1e6], F)),
    ),
    "acosh near 1 and far": (
        unary("Acosh(x)"),
        (np.array([1.0001, 3, 1e6], F),),
        np.arccosh(np.array([1.0001, 3, 1e6], F)),
    ),
    "an output that is an input": (
        "g (float[3] x) => (float[3] y) { y = Identity(x) }",
        (np.array([1, 2, 3], F),),
        np.array([1, 2, 3], F),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_row_has_the_meaning_of_onnx(row):
    model, inputs, expected = ROWS[row]
    (result,) = computed(written(model), *inputs)
    expected = outside(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


def test_epsilons_are_written():
    (log,) = operations(written(unary("Log(x)")))
    assert log.type == "log"
    assert constant(written(unary("Log(x)")), log, "epsilon") == 0


def test_indices_that_are_never_negative_are_not_guarded():
    model = "g (float[4] x, float[3] v) => (float[1] y) { i = ArgMax(v) y = Gather(x, i) }"
    assert "select" not in types(written(model))
    assert "select" in types(
        written("g (float[4] x, int64[3] i) => (float[3] y) { y = Gather(x, i) }")
    )


@pytest.mark.parametrize("never", ["inverse", "pow"])
def test_operators_that_core_ml_computes_inexactly_are_not_written(never):
    for model in (
        unary("Reciprocal(x)"),
        "g (float[3] x) => (float[3] y) <float two = {2.0}> { y = Pow(x, two) }",
        "g (float[3] x) => (float[3] y) <float two = {2.0}> { y = Pow(two, x) }",
    ):
        assert never not in types(written(model))
