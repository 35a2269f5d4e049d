"""Walks over nested graphs, and captures."""

from __future__ import annotations

from smelt.ir import scope, text

NESTED = """g (float[4] x, bool c) => (float[4] y) {
    r = Relu(x)
    q = Exp(x)
    y = If(c) <
        then_branch = t () => (float[4] t) {
            i = Neg(r)
            t = If(c) <
                then_branch = tt () => (float[4] tt) { tt = Add(i, q) },
                else_branch = te () => (float[4] te) { te = Abs(i) }
            >
        },
        else_branch = e () => (float[4] e) { e = Abs(x) }
    >
}"""


def test_graphs_come_outer_first_and_nodes_in_order() -> None:
    model = text.parse(NESTED)
    names = [graph.name for graph in scope.graphs(model)]
    assert names == ["g", "t", "tt", "te", "e"]
    assert [node.op_type for node in scope.nodes(model)] == [
        *("Relu", "Exp", "If"),
        *("Neg", "If"),
        *("Add", "Abs", "Abs"),
    ]


def test_captures_are_what_inner_graphs_read_from_outside() -> None:
    model = text.parse(NESTED)
    outer = model.graph[-1]
    assert sorted(value.name or "" for value in scope.captures(outer)) == ["c", "q", "r", "x"]
    inner = outer.attributes["then_branch"].as_graph()[-1]
    assert sorted(value.name or "" for value in scope.captures(inner)) == ["i", "q"]


def test_uses_in_branches_count() -> None:
    model = text.parse(NESTED)
    relu, exp = model.graph[0].outputs[0], model.graph[1].outputs[0]
    assert scope.has_one_use(relu)
    assert scope.num_uses(exp) == 1
    assert not scope.is_dead(exp)
    assert [node.op_type for node in scope.consumers(relu)] == ["Neg"]


def test_an_output_is_never_dead_nor_used_once() -> None:
    model = text.parse("g (float[4] x) => (float[4] y, float[4] z) { y = Neg(x) z = Abs(y) }")
    y, z = model.graph.outputs
    assert not scope.is_dead(z)
    assert not scope.has_one_use(y)


def test_a_captured_output_of_a_branch_is_seen() -> None:
    model = text.parse(NESTED)
    branch = model.graph[-1].attributes["else_branch"].as_graph()
    branch.outputs[0] = model.graph[0].outputs[0]
    assert model.graph[0].outputs[0] in scope.captures(model.graph[-1])
