"""``smelt.ConcatInterleave``: its meaning, its types and its ONNX body."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from smelt import operators
from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.concat_interleave import OPERATOR
from smelt.runtime.onnxruntime import OnnxRuntime


def test_the_inputs_take_turns() -> None:
    a, b, c = (np.array([k, k + 1]) for k in (10, 20, 30))
    (result,) = OPERATOR.reference((a, b, c), {"axis": 0})
    assert result.tolist() == [10, 20, 30, 11, 21, 31]


TWO = (
    "g (float[N,C,4] a, float[N,C,4] b) => (y) {{ y = smelt.ConcatInterleave<axis={axis}>(a, b) }}"
)


@pytest.mark.parametrize(
    ("axis", "dims"), [(0, "2*N,C,4"), (1, "N,2*C,4"), (-1, "N,C,8"), (-3, "2*N,C,4")]
)
def test_the_axis_grows(axis: int, dims: str) -> None:
    model = text.parse(TWO.format(axis=axis))
    ShapeInference(model).infer_model()
    shape = model.graph.outputs[0].shape
    assert shape is not None
    assert ",".join(str(dim) for dim in shape.dims) == dims


@pytest.mark.parametrize("expanded", [False, True], ids=["function", "expanded"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 4), (0, 3, 4), (2, 0, 4)])
def test_the_body_means_the_same(expanded: bool, axis: int, shape: tuple[int, ...]) -> None:
    model = text.parse(TWO.format(axis=axis))
    ShapeInference(model).infer_model()
    if expanded:
        assert operators.expand(model) == 1
    else:
        assert operators.attach_functions(model) == ()
        onnx.checker.check_model(ir.to_proto(model), full_check=True)
    a, b = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    (result,) = OnnxRuntime(model)(a, b)
    (expected,) = OPERATOR.reference((a, b), {"axis": axis})
    np.testing.assert_array_equal(result, expected)


WRONG = {
    "no such axis": "g (float[2,3] a) => (y) { y = smelt.ConcatInterleave<axis=2>(a, a) }",
    "ranks differ": "g (float[2,3] a, float[3] b) => (y) { y = smelt.ConcatInterleave<axis=0>(a, b) }",
    "sizes differ": "g (float[2] a, float[3] b) => (y) { y = smelt.ConcatInterleave<axis=0>(a, b) }",
    "types differ": "g (float[2] a, double[2] b) => (y) { y = smelt.ConcatInterleave<axis=0>(a, b) }",
}


@pytest.mark.parametrize("graph", WRONG.values(), ids=WRONG.keys())
def test_refuses(graph: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        ShapeInference(text.parse(graph)).infer_model()
    assert caught.value.code == "E317"
