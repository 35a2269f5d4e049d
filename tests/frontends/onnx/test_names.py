"""Writing a model renames values of subgraphs that have the name of an outer value."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.reference

from smelt.frontends.onnx import to_proto
from smelt.ir.text import parse

GRAPH = """g (bool c, float[2] x) => (float[2] y) {
    a = Neg(x)
    y = If (c) <
        then_branch = t () => (float[2] u) { p = Abs(a)  u = Neg(p) },
        else_branch = e () => (float[2] v) { q = Exp(a)  v = Neg(q) }
    >
}"""


def test_an_inner_value_that_is_called_like_an_outer_one_is_renamed():
    model = parse(GRAPH)
    choice = next(node for node in model.graph if node.op_type == "If")
    branches = [attribute.as_graph() for attribute in choice.attributes.values()]
    for branch in branches:
        branch[0].outputs[0].name = "a"
    proto = to_proto(model)
    onnx.checker.check_model(proto)
    reference = onnx.reference.ReferenceEvaluator(proto)
    (y,) = reference.run(None, {"c": np.array(True), "x": np.array([1, -2], np.float32)})
    np.testing.assert_array_equal(y, [-1, -2])
    assert branches[0][0].outputs[0].name == "a"  # The model itself stays as it is.
