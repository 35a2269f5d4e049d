"""Replace regions of a graph by one node each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from smelt.ir.partition import Part, is_constant_node
from smelt.native_regions.library import DOMAIN


def replace_regions(model: ir.Model, parts: Sequence[Part], names: Mapping[int, str]) -> None:
    """Replace each part of the main graph by a node of the operator that ``names`` gives it.

    ``names`` has the operator by the part's index; other parts keep their nodes. The new node reads
    and writes the values of the part, whose names stay. Weights that nobody reads go.
    """
    graph = model.graph
    constants = [node for node in graph if is_constant_node(node)]
    graph.remove(list(graph))
    graph.extend(constants)
    new_values: dict[ir.Value, ir.Value] = {}
    for index, part in enumerate(parts):
        if index not in names:
            graph.extend(part.nodes)
            continue
        graph.append(_node(names[index], part, new_values))
    for part in (parts[index] for index in names):
        for node in part.nodes:
            for i in range(len(node.inputs)):
                node.replace_input_with(i, None)
    graph.remove([node for node in constants if not node.outputs[0].uses()])
    for value in list(graph.initializers.values()):
        if not value.uses() and not value.is_graph_output():
            graph.initializers.pop(str(value.name))
    model.opset_imports[DOMAIN] = 1


def _node(operator: str, part: Part, new_values: dict[ir.Value, ir.Value]) -> ir.Node:
    """Return a node that stands for ``part``; other readers of its results read the node's.

    ``new_values`` has the new result of each region so far by the old one, and gets the results of
    this region.
    """
    reads = [new_values.get(value, value) for value in part.reads]
    node = ir.Node(DOMAIN, operator, reads, num_outputs=len(part.writes), name=operator)
    for old, new in zip(part.writes, node.outputs, strict=True):
        new.name, new.type, new.shape = old.name, old.type, old.shape
        old.name = None
        new_values[old] = new
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    return node
