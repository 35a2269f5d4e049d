"""``smelt.c.ConvRelu``: its shape rule, reference and function body say the same."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.native.operators import CONV_RELU
from smelt.runtime.onnxruntime import OnnxRuntime

CASES = {
    "padded": ((2, 3, 9, 7), (4, 3, 3, 3), {"pads": (1, 0, 1, 2)}),
    "strided and dilated": ((1, 2, 12, 11), (3, 2, 2, 3), {"strides": (2, 3), "dilations": (3, 2)}),
    "grouped": ((1, 6, 5, 5), (9, 2, 3, 3), {"group": 3}),
    "one dim": ((2, 3, 8), (4, 3, 3), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_body_reference_and_shape_rule_agree(name: str) -> None:
    x_shape, w_shape, given = CASES[name]
    rank = len(x_shape) - 2
    attributes = {
        "kernel_shape": w_shape[2:],
        "strides": (1,) * rank,
        "dilations": (1,) * rank,
        "pads": (0,) * (2 * rank),
        "group": 1,
        **given,
    }
    model = text.parse("g (float[1] x, float[1] w, float[1] b) => () { }", 23)
    shapes = [x_shape, w_shape, w_shape[:1]]
    for value, shape in zip(model.graph.inputs, shapes, strict=True):
        value.shape = ir.Shape(shape)
    builder = Builder(model, model.graph, ShapeInference(model))
    (result,) = CONV_RELU.body(builder, model.graph.inputs, attributes)
    result.name = "y"
    model.graph.outputs.append(result)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    (want,) = OnnxRuntime(model)(*inputs)
    (got,) = CONV_RELU.reference(inputs, attributes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    (inferred,) = CONV_RELU.infer(model.graph.inputs, attributes)
    assert inferred.shape == ir.Shape(want.shape)
