"""Constants of a model whose IR version has no initializers but defaults of inputs.

Up to IR version 3 each initializer is listed as an input. ONNX Runtime takes those for constants,
and from version 4 on for defaults that callers override, with which it neither folds nor fuses. So
a model of version 3 stays one: what passes add is written as Constant nodes.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.names import Names

LAST_WITHOUT_CONSTANTS = 3
LARGEST = 64 << 20
"""Bytes of all that would become Constant nodes, which no runtime maps from a file."""


def keep_ir_version(model: ir.Model) -> None:
    """Make constants of ``model`` nodes where they alone would ask for IR version 4.

    Nothing happens to a model without defaults of inputs, or with functions.
    """
    if model.ir_version > LAST_WITHOUT_CONSTANTS or model.functions:
        return
    if not any(value.is_graph_input() for value in model.graph.initializers.values()):
        return
    constants = [
        (graph, value)
        for graph in scope.graphs(model)
        for value in graph.initializers.values()
        if not value.is_graph_input() and value.const_value is not None
    ]
    if sum(tensor.nbytes for _, v in constants if (tensor := v.const_value) is not None) > LARGEST:
        return
    taken = Names(node.name for node in scope.nodes(model) if node.name)
    # Graphs count the nodes they ever had, so their own names would tell what passes did before.
    names = [taken.numbered("node_Constant") for _ in constants]
    for (graph, value), name in reversed(list(zip(constants, names, strict=True))):
        _become_node(graph, value, name)


def _become_node(graph: ir.Graph, value: ir.Value, name: str) -> None:
    tensor = value.const_value
    assert tensor is not None
    assert value.name is not None
    del graph.initializers[value.name]
    value.const_value = None
    attributes = [ir.AttrTensor("value", tensor)]
    node = ir.Node("", "Constant", [], attributes, outputs=[value], name=name)
    if len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)
