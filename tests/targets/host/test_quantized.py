"""Groups between quantized numbers are computed in integers by what is compiled, as on c."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text

CONVOLUTION = (
    "g (float[N,4,9,9] x) => (float[N,8,9,9] y) <float s = {{0.03}}, int8 z = {{3}}, "
    "float ws = {{0.01}}, int8 wz = {{0}}, int8[8,4,3,3] w = {{{weights}}}> {{ "
    "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) v = DequantizeLinear(w, ws, wz) "
    "c = Conv<pads=[1,1,1,1]>(d, v) r = Relu(c) p = QuantizeLinear(r, s, z) "
    "y = DequantizeLinear(p, s, z) }}"
)


def convolution() -> ir.Model:
    weights = np.random.default_rng(0).integers(-127, 128, 8 * 4 * 9)
    return text.parse(CONVOLUTION.format(weights=",".join(map(str, weights))))


X = np.random.default_rng(3).normal(size=(3, 4, 9, 9)).astype(np.float32)


@pytest.mark.parametrize("dims", [{"N": 3}, None])
def test_the_bits_are_those_of_c(dims: dict[str, int] | None) -> None:
    (expected,) = smelt.compile(convolution(), target="c", dims={"N": 3})(X)
    (found,) = smelt.compile(convolution(), target="host", engine="native", dims=dims)(X)
    np.testing.assert_array_equal(found, expected)


def test_numpy_computes_them_in_floats() -> None:
    """A sum that lies between two steps may be rounded to the other one."""
    (expected,) = smelt.compile(convolution(), target="c", dims={"N": 3})(X)
    (found,) = smelt.compile(convolution(), target="host", engine="numpy")(X)
    np.testing.assert_allclose(found, expected, atol=0.031)
