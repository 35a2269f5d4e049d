"""Nodes by operator."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from smelt.ir import scope, text
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.index import NodeIndex
from smelt.ir.rewrite import Rewriter
from smelt.ir.shapes.inference import ShapeInference

MODEL = text.parse(
    '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>'
    "g (bool c, float[2] x) => (float[2] y) {"
    " [a] r = Relu(x)"
    " [b] s = If(c) <then_branch = t () => (float[2] u) { [c] u = Neg(r) },"
    "            else_branch = e () => (float[2] v) { [d] w = Relu(r) [e] v = Neg(w) }>"
    " [f] y = f.F(s) }"
    '<domain: "f", opset_import: ["" : 18]> F (x) => (y) { [g] y = Relu(x) }'
)


def names(*keys: tuple[str, str]) -> list[str | None]:
    return [node.name for node in NodeIndex(MODEL).nodes(keys)]


def test_finds_nodes_of_every_graph_in_the_order_of_the_model() -> None:
    assert names(("", "Relu")) == ["a", "d", "g"]
    assert names(("", "Neg"), ("", "Relu")) == ["a", "c", "d", "e", "g"]


def test_a_domain_is_part_of_the_operator() -> None:
    assert names(("f", "F")) == ["f"]
    assert names(("", "F"), ("f", "Relu")) == []


def test_a_key_asked_twice_counts_once() -> None:
    assert names(("", "Neg"), ("", "Neg")) == ["c", "e"]


def test_counts_nodes_and_knows_the_opset_of_every_graph() -> None:
    index = NodeIndex(MODEL)
    assert index.count == 7
    opsets = {graph.name: index.opsets[graph] for graph in scope.graphs(MODEL)}
    assert [index.opsets[graph] for graph in scope.graphs(MODEL)] == [21, 21, 21, 18]
    assert opsets["t"] == 21


def followed(graph: str, edit: Callable[[ir.Node, Builder], ir.Value]) -> tuple[bool, ir.Model]:
    """Whether an index of ``graph`` follows ``edit`` of each node called ``old``, and the model."""
    model = text.parse(graph)
    shapes = ShapeInference(model)
    shapes.infer_model()
    index, rewriter = NodeIndex(model), Rewriter(model, shapes, Constants())
    for node in [node for node in model.graph if node.name == "old"]:
        builder = rewriter.builder(node, [node], "test")
        rewriter.replace(node, [edit(node, builder)])
        rewriter.builders.append(builder)
    rewriter.flush()
    valid = index.follow(rewriter.builders, rewriter.removed)
    if valid:
        fresh = NodeIndex(model)
        keys = fresh.operators
        assert (index.operators, index.count) == (keys, fresh.count)
        assert all(index.nodes([key]) == fresh.nodes([key]) for key in keys)
    return valid, model


CHAIN = (
    "g (float[2] x) => (float[2] y) { [a] r = Relu(x) [old] s = Neg(r) [b] t = Relu(s)"
    " [old] u = Neg(t) [c] y = Exp(u) }"
)


def test_follows_what_rules_make_and_remove() -> None:
    def edit(node: ir.Node, b: Builder) -> ir.Value:
        return b.op("Mul", b.op("Relu", node.inputs[0]), b.const_like(-1, node.inputs[0]))

    valid, model = followed(CHAIN, edit)
    assert valid
    assert [node.op_type for node in model.graph] == ["Relu", "Relu", "Mul"] * 2 + ["Exp"]


def test_follows_the_identity_that_an_output_needs() -> None:
    graph = "g (float[2] x) => (float[2] y, float[2] z) { z = Neg(x) [old] y = Abs(x) }"
    assert followed(graph, lambda node, b: node.inputs[0])[0]


def test_does_not_follow_graphs_that_come_or_go() -> None:
    branches = (
        "g (bool c, float[2] x) => (float[2] y) { [old] y = If(c)"
        " <then_branch = t () => (float[2] u) { u = Neg(x) },"
        "  else_branch = e () => (float[2] v) { v = Abs(x) }> }"
    )
    assert not followed(branches, lambda node, b: b.op("Relu", b.model.graph.inputs[1]))[0]
