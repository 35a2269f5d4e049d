"""Loops and branches that carry sequences: their types, and those of tensors beside them."""

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.runner import open_runner

GROWING = """<ir_version: 10, opset_import: ["" : 20]>
g (float[2] x, int64 n) => (int64[K] y, int64 w) {{
  s = SequenceEmpty()
  zero = Constant<value_int = 0>()
  d = GreaterOrEqual(n, zero)
  f, k = Loop(n, d, s, x) <body = b (int64 i, bool c, {} q, {} j) => (c2, r, m) {{
    c2 = Identity(c)
    r = SequenceInsert(q, j)
    m = Concat<axis = 0>(j, j)
  }}>
  y = Shape(k)
  w = SequenceLength(f)
}}"""
BRANCHES = """<ir_version: 10, opset_import: ["" : 20]>
g (float[A] x, float[2] z, bool c, int64[R] s) => (int64[K] y, int64 w) {
  f, k = If(c) <
    then_branch = t () => (a, b) { a = SequenceConstruct(x) b = Identity(z) },
    else_branch = e () => (d, h) { d = SequenceConstruct(z, z) h = Reshape(x, s) }
  >
  y = Shape(k)
  w = SequenceLength(f)
}"""


def results(model: ir.Model, *inputs: object) -> list[list[int]]:
    return [np.asarray(x).tolist() for x in open_runner(model)(*map(np.asarray, inputs))]


@pytest.mark.parametrize("types", [("", ""), ("seq(float)", "float[N]"), ("seq(float)", "")])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_tensor_that_grows_beside_a_sequence_has_no_known_size(types, rounds):
    """The library takes the result of one iteration, 4 elements, for that of the loop, 16 elements."""
    source = GROWING.format(*types)
    inputs = np.float32([1, 2]), np.int64(rounds)
    right = [[2 << rounds], rounds]
    assert results(text.parse(source), *inputs) == right
    assert results(smelt.optimize(text.parse(source)), *inputs) == right


def test_an_untyped_body_gets_the_sequence_type():
    """PyTorch's exporter writes such a body for EmbeddingBag.

    With the library's rule, the state became a tensor, which no runtime loads.
    """
    model = text.parse(GROWING.format("", ""))
    ShapeInference(model).infer_model()
    (loop,) = (node for node in model.graph if node.op_type == "Loop")
    body = loop.attributes["body"].as_graph()
    floats = ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))
    assert body.inputs[2].type == body.outputs[1].type == loop.outputs[0].type == floats
    assert body.inputs[2].type is not loop.inputs[2].type
    assert body.inputs[3].type == ir.TensorType(ir.DataType.FLOAT)


@pytest.mark.parametrize(("way", "right"), [(True, [[2], 1]), (False, [[7], 2])])
def test_branches_that_give_a_sequence_and_a_tensor(way, right):
    source = text.parse(BRANCHES)
    inputs = np.ones(7, np.float32), np.float32([1, 2]), np.bool_(way), np.int64([-1])
    assert results(source, *inputs) == right
    assert results(smelt.optimize(text.parse(BRANCHES)), *inputs) == right
