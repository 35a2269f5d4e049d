"""Weights of 4 bits in models whose opset has no such type, as ONNX Runtime's quantizer writes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6)).astype(np.float32)
ROWS = np.array([[3, 0, 1]])

WEIGHTS = """
    g (float[N,6] x) => (float[N,4] y) <float[4] s = {0.5, 0.25, 2.0, 1.0}> {
        w = com.microsoft.DequantizeLinear<axis=1>(q, s, z)
        y = MatMul(x, w)
    }
"""
TABLE = """
    g (int64[N,3] x) => (float[N,3,32] y) {
        y = com.microsoft.GatherBlockQuantized<block_size=16, quantize_axis=1>(q, x, s, z)
    }
"""


def model_of(graph: str, opset: int, **weights: np.ndarray) -> ir.Model:
    model = text.parse(graph, opset)
    for name, array in weights.items():
        value = next(v for node in model.graph for v in node.inputs if v and v.name == name)
        value.const_value = tensor = ir.tensor(array, name=name)
        value.shape, value.dtype = tensor.shape, tensor.dtype
        model.graph.register_initializer(value)
    return model


def small(dtype: type, low: int, high: int, *shape: int) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize(("dtype", "low"), [(ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)])
def test_weights(target: str, opset: int, dtype: type, low: int) -> None:
    codes = small(dtype, low, low + 16, 6, 4)
    model = model_of(WEIGHTS, opset, q=codes, z=small(dtype, low, low + 16, 4))
    expected = OnnxRuntime(model)(X)
    artifact = smelt.compile(model, target=target, dims={"N": 2})
    np.testing.assert_allclose(artifact(X)[0], expected[0], rtol=1e-5)


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(("dtype", "low"), [(ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)])
def test_rows_of_a_table(target: str, dtype: type, low: int) -> None:
    codes = small(dtype, low, low + 16, 5, 32)
    scales = RNG.uniform(0.5, 2, (5, 2)).astype(np.float32)
    zeros = small(dtype, low, low + 16, 5, 2)
    model = model_of(TABLE, 17, q=codes, s=scales, z=zeros)
    expected = OnnxRuntime(model)(ROWS)
    artifact = smelt.compile(model, target=target, dims={"N": 1})
    np.testing.assert_allclose(artifact(ROWS)[0], expected[0], rtol=1e-6)
