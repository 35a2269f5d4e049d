"""Where a value stands in the interface."""

from __future__ import annotations

from smelt.ir import text
from smelt.ir.interface_change import ports_of


def test_each_place_of_a_value() -> None:
    graph = text.parse(
        "g (float[2] x, float[2] w) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(w) }"
    ).graph
    x, w = graph.inputs
    y, z = graph.outputs
    graph.outputs.append(y)
    assert ports_of(graph, x) == [("input", 0)]
    assert ports_of(graph, w) == [("input", 1)]
    assert ports_of(graph, y) == [("output", 0), ("output", 2)]
    assert ports_of(graph, z) == [("output", 1)]
