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
    "the magnitude of the least int8 wraps": (
        "g (int8[2] x) => (int8[2] y) { y = Abs(x) }",
        (np.array([-128, 5], np.int8),),
        np.array([-128, 5], np.int8),
    ),
    "a scatter of bytes wraps": (
        'g (uint8[2] x, int64[2,1] i, uint8[2] u) => (uint8[2] y) { y = ScatterND <reduction = "add"> (x, i, u) }',
        (np.array([250, 1], np.uint8), np.array([[0], [0]]), np.array([10, 20], np.uint8)),
        np.array([24, 1], np.uint8),
    ),
    "a slice from a computed start to an end beyond every size": (
        "g (float[4] x, int64[1] s) => (float[n] y) <int64[1] e = {9223372036854775807}> { y = Slice(x, s, e) }",
        (np.arange(4, dtype=F), np.array([-3])),
        np.array([1, 2, 3], F),
    ),
    "a rotation of pairs of neighbours": (
        "g (float[1,1,1,4] x) => (float[1,1,1,4] y) <float[1,1,1] c = {0}, float[1,1,1] s = {1}> { y = RotaryEmbedding <interleaved = 1, rotary_embedding_dim = 2> (x, c, s) }",
        (np.array([[[[1, 2, 3, 4]]]], F),),
        np.array([[[[-2, 1, 3, 4]]]], F),
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
    (result,) = computed(written(model, opset=23), *inputs)
    expected = outside(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


HALF = {
    "the epsilon of LayerNormalization": (
        "g (float[1,2] x) => (float[1,2] y) <float[2] s = {1, 1}> { y = LayerNormalization <epsilon = 1e-12> (x, s) }",
        [[3, 3]],
        [[0, 0]],
    ),
    "the epsilon of BatchNormalization": (
        "g (float[1,2] x) => (float[1,2] y) <float[2] s = {1, 1}, float[2] z = {0, 0}> { y = BatchNormalization <epsilon = 1e-9> (x, s, z, z, z) }",
        [[0, 0]],
        [[0, 0]],
    ),
    "a least divisor": (
        "g (float[2] x) => (float[2] y) <float e = {1e-12}> { m = Max(x, e) y = Div(x, m) }",
        [0, 2],
        [0, 1],
    ),
    "a least divisor by Clip": (
        "g (float[2] x) => (float[2] y) <float e = {1e-9}, float h = {4}> { m = Clip(x, e, h) y = Div(x, m) }",
        [0, 2],
        [0, 1],
    ),
    "a small addend": (
        "g (float[2] x) => (float[2] y) <float e = {1e-12}> { a = Add(x, e) r = Sqrt(a) y = Div(x, r) }",
        [0, 4],
        [0, 2],
    ),
    "a small bound of a comparison": (
        "g (float[2] x) => (bool[2] y) <float e = {1e-9}> { y = Less(x, e) }",
        [0, 1],
        [1, 0],
    ),
    "a small divisor": (
        "g (float[2] x) => (float[2] y) <float e = {1e-9}> { y = Div(x, e) }",
        [0, 0],
        [0, 0],
    ),
    "integers of 16 bits": (
        "g (float[2] x) => (uint16[2] y) <float s = {0.5}, uint16 z = {32768}> { y = QuantizeLinear(x, s, z) }",
        [-10000, 10000.5],
        [12768, 52769],
    ),
}
"""Results that float16 would spoil: its least number is 6e-8, its largest integers are even."""


@pytest.mark.parametrize("row", HALF)
def test_numbers_that_float16_has_not(row):
    model, given, expected = HALF[row]
    (result,) = computed(written(model, precision="fp16"), np.array(given, F))
    np.testing.assert_array_equal(result, expected)


def test_what_float16_cannot_count_is_computed_in_float32():
    for model, opset in (
        ("g (float n) => (float[M] y) <float a = {0}, float d = {1}> { y = Range(a, n, d) }", 21),
        ("g (int32[2] x) => (float[2] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }", 21),
        (
            "g (float[1,2] x) => (float[1,2] y) <float[2] s = {1, 1}> { y = RMSNormalization(x, s) }",
            23,
        ),
    ):
        artifact = written(model, opset=opset, precision="fp16")
        kinds = {each.type: each.outputs[0].type.element.name for each in operations(artifact)}
        chosen = kinds.keys() & {"range_1d", "reduce_mean"} or {"mul"}
        assert {kinds[each] for each in chosen} == {"FLOAT32"}


def test_coordinates_of_pixels_stay_float32():
    model = "g (float[1,1,4,4] x, float[1,2,2,2] g) => (float[1,1,2,2] y) { y = GridSample(x, g) }"
    assert types(written(model, precision="fp16")) == ["cast", "resample", "cast"]


OPEN_SLICES = {(1, 2**63 - 1): [1, 2], (-4, 2**63 - 1): [0, 1, 2], (0, -1): [0, 1], (-2, -1): [1]}


@pytest.mark.parametrize("ends", OPEN_SLICES)
def test_slices_of_an_open_axis(ends):
    start, end = ends
    model = f"g (float[S] x) => (float[n] y) <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}> {{ y = Slice(x, s, e) }}"
    (result,) = computed(written(model, dims={"S": (2, 9)}), np.arange(3, dtype=F))
    assert result.tolist() == OPEN_SLICES[ends]


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
