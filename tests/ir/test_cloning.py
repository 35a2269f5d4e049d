"""Copies of models: the same file, and nothing shared but tensors and types."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import scope, text
from smelt.ir.cloning import clone_model

MODEL = """
g (float[N,4] x, bool c) => (float[N,4] y, z) <float[4] w = {1, 2, 3, 4}> {
  a = Mul(x, w)
  y, unused = Dropout(a)
  z = If(c) <
    then_branch = t () => (float[N,4] u) { u = Neg(a) },
    else_branch = e () => (float[N,4] v) <float one = {1}> { v = Clip(w, , one) }
  >
}
"""


@pytest.fixture
def model() -> ir.Model:
    model = text.parse(MODEL)
    node = model.graph[0]
    node.metadata_props["origin"] = "here"
    node.meta["seen"] = 3
    node.meta.invalidate("seen")
    node.outputs[0].metadata_props["kind"] = "product"
    node.outputs[0].meta["bounds"] = (0, 1)
    node.outputs[0].shape = ir.Shape(["N", 4], denotations=["BATCH", None], frozen=True)
    model.graph.meta["whole"] = True
    model.graph.inputs[0].meta["first"] = True
    model.metadata_props["author"] = "somebody"
    return model


def test_a_copy_is_what_the_library_makes(model: ir.Model) -> None:
    copy, theirs = clone_model(model), model.clone()
    assert ir.to_proto(copy) == ir.to_proto(theirs) == ir.to_proto(model)
    for one, other in zip(scope.nodes(copy), scope.nodes(theirs), strict=True):
        assert dict(one.meta) == dict(other.meta)
        assert one.meta.is_valid("seen") == other.meta.is_valid("seen")
        for a, b in zip(one.outputs, other.outputs, strict=True):
            assert (a.name, a.type, a.shape, dict(a.meta)) == (
                b.name,
                b.type,
                b.shape,
                dict(b.meta),
            )
            assert len(a.uses()) == len(b.uses())
            assert a.shape is None or not a.shape.frozen
    assert dict(copy.graph.meta) == {**theirs.graph.meta}
    assert dict(copy.graph.inputs[0].meta) == {"first": True}


def test_a_copy_shares_neither_nodes_nor_values_nor_shapes(model: ir.Model) -> None:
    before = ir.to_proto(model)
    copy = clone_model(model)
    ours = {id(node) for node in scope.nodes(model)}
    assert not ours & {id(node) for node in scope.nodes(copy)}
    first = copy.graph[0]
    first.metadata_props["origin"] = "elsewhere"
    first.outputs[0].shape[0] = ir.SymbolicDim("M")
    first.outputs[0].name = "other"
    copy.metadata_props.clear()
    assert ir.to_proto(model) == before
    [inner, *_] = scope.graphs_below(copy.graph)
    assert inner is copy.graph


def test_no_metadata_is_made(model: ir.Model) -> None:
    clone_model(model)
    assert model.graph[1]._metadata is None
    assert model.graph[1].outputs[0]._metadata is None


def test_a_function_that_reads_what_is_not_its_own_is_refused() -> None:
    x, y = ir.Value(name="x"), ir.Value(name="y")
    graph = ir.Graph([], [], nodes=[ir.Node("", "Neg", [x], outputs=[y])], name="f")
    graph.outputs.append(y)
    model = text.parse("g (float x) => (y) { y = Neg(x) }")
    function = ir.Function("d", "f", graph=graph, attributes=[])
    model.functions[function.identifier()] = function
    with pytest.raises(RuntimeError):
        clone_model(model)
