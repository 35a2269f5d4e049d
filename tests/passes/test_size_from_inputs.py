"""Which dims are computed at run time from the inputs of a graph, and by which nodes."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.passes.size_from_inputs import size_from_inputs

GRAPH = "g (float[N,M] x, float[K2,7] z) => (float[N,M] y) { y = Relu(x) }"

DIMS = {
    "M": ["Shape"],
    "2*K": ["Shape"],
    "N + 2": ["Shape", "Add"],
    "M - 1": ["Shape", "Add"],
    "K": None,
    "N + M": None,
    "2*N": None,
    "N + K": None,
}
"""The operators that compute a dim; None if no input declares it."""


@pytest.mark.parametrize("dim", DIMS)
def test_a_dim_is_read_off_an_input_that_declares_it(dim: str) -> None:
    model = text.parse(GRAPH, 18)
    model.graph.inputs[1].shape = ir.Shape(["2*K", 7])
    builder = Builder(model, model.graph, ShapeInference(model))
    found = size_from_inputs(ir.SymbolicDim(dim), model.graph, builder)
    assert (found is None) == (DIMS[dim] is None)
    assert [node.op_type for node in builder.created] == (DIMS[dim] or [])
