"""The compiled program computes quantized groups in integers, as the target c does."""

from __future__ import annotations

from typing import Any

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
    """A sum halfway between two steps may be rounded to the other one."""
    (expected,) = smelt.compile(convolution(), target="c", dims={"N": 3})(X)
    (found,) = smelt.compile(convolution(), target="host", engine="numpy")(X)
    np.testing.assert_allclose(found, expected, atol=0.031)


@pytest.mark.parametrize("zero", [-128, 0, 127])
@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("host", {"engine": "numpy"}),
        ("host", {"engine": "native"}),
        ("c", {"dims": {"N": (1, 9)}}),
        ("c", {"dims": {"N": 4}}),
    ],
)
def test_nan_is_the_least_number(target: str, options: dict[str, Any], zero: int) -> None:
    """ONNX leaves it open; ONNX Runtime and all engines here quantize NaN to the least number,
    whatever the zero point.
    """
    model = text.parse(
        f"g (float[N] x) => (int8[N] y) <float s = {{1}}, int8 z = {{{zero}}}> "
        "{ y = QuantizeLinear(x, s, z) }"
    )
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    (y,) = smelt.compile(model, target=target, **options)(x)
    assert y.tolist() == [-128, 127, -128, zero]
