"""Before opset 13 a Softmax and its kin work on a matrix; one axis of it often has all elements."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.ir.opsets.raise_opset import raise_opset
from smelt.runtime.onnxruntime import OnnxRuntime

THREE = ["Flatten", "Shape", "Reshape"]
SHAPES = {
    "[2,3]": (1, []),
    "[2,3,1,1]": (1, []),
    "[N,3,1,1]": (1, []),
    "[2,1,3,1]": (1, []),
    "[2,1,N]": (1, []),
    "[2,1,1]": (1, []),
    "[2,1,3] ": (0, THREE),
    "[1,1,3]": (0, []),
    "[2,3,4]": (1, THREE),
    "[2,3,N]": (1, THREE),
    "[2,3,4,1]": (-3, THREE),
    "[2,3,4,1] ": (-2, []),
}
"""The axis, and what stands around the operator."""


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_node_where_other_axes_of_the_rows_have_one_element(shape: str, op_type: str) -> None:
    axis, around = SHAPES[shape]
    given = f"float{shape.strip()}"
    source = text.parse(f"g ({given} x) => ({given} y) {{ y = {op_type}<axis={axis}>(x) }}", 12)
    raised = source.clone()
    raise_opset(raised, 13)
    assert sorted(node.op_type for node in raised.graph) == sorted([op_type, *around])
    sizes = [int(size) if size.isdigit() else 5 for size in shape.strip()[1:-1].split(",")]
    x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
    (expected,) = OnnxRuntime(source)(x)
    for model in (raised, smelt.optimize(source)):
        np.testing.assert_allclose(OnnxRuntime(model)(x)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("declared", ["float16[2,3]", "float[3]"])
def test_a_wrong_declared_result_is_an_error_of_the_model(declared: str) -> None:
    model = text.parse(
        f"""<ir_version: 8, opset_import: ["" : 11]>
        g (float[2,3] x, float[3] w) => ({declared} y)
        {{ n = LayerNormalization(x, w) y = Softmax<axis=0>(n) }}"""
    )
    with pytest.raises(InvalidModel, match="E317 the declared type or shape of a result"):
        raise_opset(model, 13)
