"""Operators that ONNX took back: ONNX Runtime's numbers, by what ONNX has."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import InvalidModel
from smelt.runtime.runner import open_runner

X = np.linspace(-2, 2, 60, dtype=np.float32).reshape(1, 3, 4, 5)
NODES = {
    "Affine": "Affine<alpha=2.0, beta=1.0>(x)",
    "Affine as it stands": "Affine(x)",
    "Crop": "Crop<border=[1,0,2,1]>(x)",
    "Crop of nothing": "Crop<border=[0,0,0,0]>(x)",
    "Crop to a size": "Crop<border=[1,2,0,0], scale=[2,3]>(x)",
    "DynamicSlice": "DynamicSlice(x, s, e, a)",
    "DynamicSlice from the first axis on": "DynamicSlice(x, a, e)",
    "ImageScaler": "ImageScaler<scale=2.0, bias=[1.0,2.0,3.0]>(x)",
    "MeanVarianceNormalization": "MeanVarianceNormalization(x)",
    "ParametricSoftplus": "ParametricSoftplus<alpha=2.0, beta=1.5>(x)",
    "Scale": "Scale<scale=3.0>(x)",
    "ScaledTanh": "ScaledTanh<alpha=2.0, beta=1.5>(x)",
    "ThresholdedRelu": "ThresholdedRelu<alpha=0.5>(x)",
    "means of all": "MeanVarianceNormalization<across_channels=1>(x)",
    "means alone": "MeanVarianceNormalization<normalize_variance=0>(x)",
}


def model(node: str, opset: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[1,3,4,5] x) => (float[] y)
        <int64[2] s = {{1, 1}}, int64[2] e = {{3, 3}}, int64[2] a = {{2, 3}}> {{ y = {node} }}"""
    )


def with_open_rank(node: str, opset: int) -> onnx.ModelProto:
    proto = model(node, opset)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


@pytest.mark.parametrize("opset", [7, 8, 9])
@pytest.mark.parametrize("node", NODES.values(), ids=NODES.keys())
def test_numbers(node: str, opset: int) -> None:
    if "Mean" in node and opset == 9:
        node = "MeanVarianceNormalization<axes=[0,2,3]>(x)"  # described by ONNX from 9 on
    source = with_open_rank(node, opset)
    (expected,) = open_runner(source, "onnxruntime")(X)
    made = smelt.optimize(source, opset=18)
    assert made.opset_import[0].version == 18
    (found,) = open_runner(made)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert found.shape == expected.shape
    (by_default,) = smelt.compile(source, target="host")(X)
    np.testing.assert_allclose(by_default, expected, rtol=1e-4, atol=1e-6)


REFUSED = {
    "gone": ("Affine(x)", 10, "E307"),
    "no border": ("Crop(x)", 7, "E308"),
    "two inputs": ("Affine(x, x)", 7, "E308"),
    "no numbers": ("ScaledTanh(x)", 9, "E308"),
}


@pytest.mark.parametrize(("node", "opset", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(node: str, opset: int, code: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        smelt.optimize(with_open_rank(node, opset))
    assert caught.value.code == code
