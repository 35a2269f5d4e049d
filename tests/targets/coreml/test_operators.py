"""Operators whose node tests have types that Core ML lacks, or few cases: packages agree with ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, outside, types, written

from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.runner import open_runner

F = np.float32
RANDOM = np.random.default_rng(3)
INTEGERS = np.array([[-(2**31), -5, -1], [0, 6, 2**31 - 1]], np.int64)
OTHERS = np.array([-1, 12345, -(2**30)], np.int64)
REGIONS = np.array([[0, 0, 5, 4], [-9, 1, 40, 3], [2, 2, 2, 2]], F)


def floats(*sizes: int) -> np.ndarray:
    return RANDOM.normal(size=sizes).astype(F)


def roi_align(attributes: str, opset: int = 16) -> str:
    return (
        "g (float[2,3,6,5] x, float[R,4] r, int64[R] b) => (float[R,3,2,3] y) { y = RoiAlign"
        f" <output_height = 2, output_width = 3, {attributes}> (x, r, b) }}"
    )


ROWS = {
    "Einsum": (
        'g (float[2,3] x, float[3,4] z) => (float[4,2] y) { y = Einsum <equation = "ij,jk->ki"> (x, z) }',
        (floats(2, 3), floats(3, 4)),
    ),
    "GlobalLpPool": (
        "g (float[2,3,4,4] x) => (float[2,3,1,1] y) { y = GlobalLpPool <p = 2> (x) }",
        (floats(2, 3, 4, 4),),
    ),
    "ReduceLogSumExp": (
        "g (float[2,3] x) => (float[2] y) <int64[1] a = {1}> { y = ReduceLogSumExp <keepdims = 0> (x, a) }",
        (floats(2, 3),),
    ),
    "Loop": (
        "g (float[3] x) => (float[3] y) <int64 n = {5}, bool t = {1}> { y = Loop (n, t, x)"
        " <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] o)"
        " { d = Identity(c) o = Add(s, s) }> }",
        (floats(3),),
    ),
    "BitwiseAnd": (
        "g (int64[2,3] x, int64[3] z) => (int64[2,3] y) { y = BitwiseAnd(x, z) }",
        (INTEGERS, OTHERS),
    ),
    "BitwiseOr": (
        "g (int64[2,3] x, int64[3] z) => (int64[2,3] y) { y = BitwiseOr(x, z) }",
        (INTEGERS, OTHERS),
    ),
    "BitwiseXor": (
        "g (int64[N,3] x, int64[3] z) => (int64[N,3] y) { y = BitwiseXor(x, z) }",
        (INTEGERS, OTHERS),
    ),
    "Det": ("g (float[2,4,4] x) => (float[2] y) { y = Det(x) }", (floats(2, 4, 4),)),
    "MaxUnpool": (
        "g (float[1,2,3,3] x, int64[1,2,3,3] i) => (float[1,2,6,6] y)"
        " { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) }",
        (floats(1, 2, 3, 3), RANDOM.permutation(72)[:18].reshape(1, 2, 3, 3)),
    ),
    "STFT": (
        "g (float[2,20,1] x) => (float[2,5,5,2] y) <int64 s = {3}, int64 n = {8}>"
        " { y = STFT (x, s,, n) }",
        (floats(2, 20, 1),),
    ),
    "RoiAlign of a grid": (
        roi_align("sampling_ratio = 2, spatial_scale = 0.5"),
        (floats(2, 3, 6, 5), REGIONS, np.array([0, 1, 1])),
    ),
    "RoiAlign without the half pixel": (
        roi_align('sampling_ratio = 1, coordinate_transformation_mode = "output_half_pixel"'),
        (floats(2, 3, 6, 5), REGIONS, np.array([1, 0, 1])),
    ),
}
OPSETS = {"RoiAlign of a grid": 16, "RoiAlign without the half pixel": 16, "MaxUnpool": 11}


@pytest.mark.parametrize("name", ROWS)
def test_the_package_agrees(name):
    model, inputs = ROWS[name]
    opset = OPSETS.get(name, 21)
    parsed = text.parse(model, opset=opset)
    names = {dim: (1, 8) for dim in ("R", "N") if f"[{dim}," in model}
    artifact = written(model, opset=opset, dims=names)
    expected = outside(open_runner(parsed)(*inputs)[0])
    (found,) = computed(artifact, *inputs)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_running_products(exclusive, reverse):
    model = (
        "g (float[2,4] x) => (float[2,4] y) <int64 a = {-1}>"
        f" {{ y = CumProd <exclusive = {exclusive}, reverse = {reverse}> (x, a) }}"
    )
    x = np.array([[2, 3, -1, 5], [0, 1, np.inf, 4]], F)
    ordered = x[:, ::-1] if reverse else x
    shifted = np.concatenate([np.ones((2, 1), F), ordered[:, :-1]], 1) if exclusive else ordered
    with np.errstate(invalid="ignore"):
        expected = np.cumprod(shifted, 1)
    expected = expected[:, ::-1] if reverse else expected
    np.testing.assert_array_equal(computed(written(model, opset=26), x)[0], expected)


REFUSED = {
    "a determinant of many rows": (
        "g (float[5,5] x) => (float y) { y = Det(x) }",
        "up to 4 rows",
        21,
    ),
    "an adaptive number of samples": (roi_align("sampling_ratio = 0"), "sampling_ratio", 16),
    "a maximum of samples": (
        roi_align('sampling_ratio = 1, mode = "max"'),
        "weighted corners",
        16,
    ),
    "bits of five dims": (
        "g (int32[1,1,1,1,2] x) => (int32[1,1,1,1,2] y) { y = BitwiseAnd(x, x) }",
        "one more",
        21,
    ),
    "boxes of unknown number": (
        "g (float[1,6,4] b, float[1,2,6] s) => (int64[n,3] y) <int64 m = {3}>"
        " { y = NonMaxSuppression(b, s, m) }",
        "data",
        21,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    model, why, opset = REFUSED[name]
    with pytest.raises(SmeltError) as caught:
        written(model, opset=opset, dims={"R": (1, 8)} if "[R," in model else None)
    (error,) = caught.value.errors
    assert error.code == "E201"
    assert why in error.why + error.fix


def test_a_transform_is_a_product():
    model, _ = ROWS["STFT"]
    assert types(written(model))[:1] == ["gather"]
    assert "matmul" in types(written(model))
