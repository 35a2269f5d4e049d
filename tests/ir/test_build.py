"""The Builder: names of what it makes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from smelt.ir import scope, text
from smelt.ir.build import Builder
from smelt.ir.cloning import clone_into
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.runner import open_runner


def test_names_in_a_branch_hide_no_outer_value() -> None:
    model = text.parse(
        "g (bool c, float[4] x) => (float[4] y) { y = If (c) <"
        "then_branch = t () => (float[4] u) { u = Neg(x) },"
        "else_branch = f () => (float[4] v) { v = Abs(x) }> }"
    )
    [node] = model.graph
    shapes, x = ShapeInference(model), model.graph.inputs[1]
    made = []
    for graph in (model.graph, *scope.subgraphs(node)):
        b = Builder(model, graph, shapes, before=next(iter(graph)))
        made += [b.op("Relu", x), b.constant(np.zeros(2)), b.constant(np.zeros(2), name="u")]
    names = [value.name for value in made]
    assert len(set(names)) == len(names)
    assert not {"c", "x", "y", "u", "v"} & set(names)


def test_discarded_nodes_and_their_branches_read_nothing() -> None:
    """A refused rewrite left readers behind, and the next one could not take the value's place."""
    model = text.parse(
        "g (bool c, float[4] x) => (float[4] y) { a = Exp(x) y = If (c) <"
        "then_branch = t () => (float[4] u) { u = Neg(a) },"
        "else_branch = f () => (float[4] v) { v = If (c) <"
        "then_branch = t2 () => (float[4] u2) { u2 = Sin(a) },"
        "else_branch = f2 () => (float[4] v2) { v2 = Abs(a) }> }> }"
    )
    exp, node = model.graph
    before = exp.outputs[0].uses()
    b = Builder(model, model.graph, ShapeInference(model))
    clone_into(b, node, {})
    assert len(exp.outputs[0].uses()) > len(before)
    b.discard()
    assert exp.outputs[0].uses() == before
    assert list(model.graph) == [exp, node]


def test_names_in_a_function_are_apart_from_its_branches_and_inputs() -> None:
    model = text.parse("g (float[4] x) => (float[4] y) { y = Neg(x) }")
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 23})
    b = Builder(model, graph, ShapeInference(model), in_function=True)
    inner_input = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4]))
    inner = b.in_body(ir.Graph([inner_input], [], nodes=[]))
    x = b.input("x", ir.DataType.FLOAT, ir.Shape([4]))
    made = [inner_input, x, b.op("Relu", x), inner.op("Relu", x), inner.constant(np.zeros(2))]
    assert len({value.name for value in made}) == len(made)
    assert list(graph.inputs) == [x]
    assert [node.op_type for node in inner.graph] == ["Relu", "Constant"]


def test_discarded_constants_leave_the_graph() -> None:
    model = text.parse("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { y = Add(x, w) }")
    b = Builder(model, model.graph, ShapeInference(model))
    value = b.constant(np.ones(4, np.float32), name="one")
    assert value.name in model.graph.initializers
    b.discard()
    assert list(model.graph.initializers) == ["w"]


@pytest.mark.parametrize("spills", [False, True])
def test_large_constants_go_to_a_file_where_that_is_asked_for(
    spills: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text.parse("g (float[4] x) => (float[4] y) { y = Neg(x) }")
    moved: list[np.ndarray] = []
    monkeypatch.setattr("smelt.ir.build.spilled", lambda array: moved.append(array) or array)
    b = Builder(model, model.graph, ShapeInference(model), spills=spills)
    value = b.constant(np.ones(4, np.float32))
    assert len(moved) == spills
    assert value.const_value is not None
    assert not value.const_value.numpy().flags.writeable


def test_a_cast_to_the_type_that_a_value_has_is_the_value() -> None:
    model = text.parse("g (float[4] x) => (float[4] y) { y = Neg(x) }")
    b, (x,) = Builder(model, model.graph, ShapeInference(model)), model.graph.inputs
    assert b.cast(x, ir.DataType.FLOAT) is x
    assert b.cast(x, ir.DataType.INT64).dtype == ir.DataType.INT64


@pytest.mark.parametrize(("opset", "kinds"), [(14, ["Shape", "Gather"]), (15, ["Shape"])])
def test_a_size_is_read_in_the_form_of_the_opset(opset: int, kinds: list[str]) -> None:
    model = text.parse("g (float[B,4] x) => (float[B,4] y) { y = Neg(x) }", opset)
    b = Builder(model, model.graph, ShapeInference(model))
    model.graph.outputs.append(b.size(model.graph.inputs[0], 0))
    assert [node.op_type for node in b.created] == kinds
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    [_, size] = open_runner(model)(np.zeros((3, 4), np.float32))
    assert size.tolist() == [3]
