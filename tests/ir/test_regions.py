"""Regions grow with the nodes that join them, and know their readers outside."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import text
from smelt.ir.regions import Region, Regions

GRAPH = (
    "g (float[4] x, float[4] z) => (float[4] y, float[4] w, float[4] v) "
    "{ a = Neg(x) b = Abs(a) c = Neg(z) d = Abs(c) e = Add(b, d) y = Exp(e) w = Log(e) v = Log(a) }"
)


def grown(*kinds: str) -> tuple[dict[str, ir.Node], list[Region]]:
    """Regions that Negs begin and operators of ``kinds`` join."""
    nodes = {str(node.outputs[0].name): node for node in text.parse(GRAPH, 23).graph}
    regions, values = Regions(), set[ir.Value]()
    for node in nodes.values():
        operands = [value for value in node.inputs if value in values and value is not None]
        if node.op_type == "Neg":
            regions.begin(node)
        elif node.op_type in kinds and operands:
            regions.join(node, operands)
        else:
            continue
        values.update(node.outputs)
    return nodes, regions.with_nodes()


def test_a_node_with_several_operands_makes_their_regions_one() -> None:
    nodes, (left, right) = grown("Abs")
    assert (left.sources, list(left.nodes)) == ([nodes["a"]], [nodes["b"]])
    assert (right.sources, list(right.nodes)) == ([nodes["c"]], [nodes["d"]])
    nodes, (whole,) = grown("Abs", "Add")
    assert whole.sources == [nodes["a"], nodes["c"]]
    assert list(whole.nodes) == [nodes["b"], nodes["d"], nodes["e"]]


def test_sources_alone_are_no_region() -> None:
    assert grown()[1] == []


def test_readers_outside_are_those_that_stay() -> None:
    nodes, (region,) = grown("Abs", "Add")
    assert list(region.readers_outside(nodes["a"].outputs[0])) == [nodes["v"]]
    assert list(region.readers_outside(nodes["b"].outputs[0])) == []
    assert list(region.readers_outside(nodes["e"].outputs[0])) == [nodes["y"], nodes["w"]]


def test_a_region_knows_its_sources_and_members() -> None:
    nodes, (region,) = grown("Abs", "Add")
    before = {key.name: value.name for key, value in region.inputs_of_sources().items() if value}
    assert before == {"a": "x", "c": "z"}
    assert region.is_among({nodes["c"]})
    assert region.is_among({nodes["b"]})
    assert not region.is_among({nodes["v"]})
