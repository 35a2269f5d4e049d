"""Nodes by operator."""

from __future__ import annotations

from smelt.ir import scope, text
from smelt.ir.index import NodeIndex

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
