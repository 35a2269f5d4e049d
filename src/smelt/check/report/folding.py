"""Find the nodes whose results depend on constants alone."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import constants, opset, scope


def constant_nodes(model: ir.Model) -> set[ir.Node]:
    """Return the nodes that read constants only and have the same results in every run.

    A node with inner graphs, and a node whose result is an output of its graph, is not among them.
    """
    found: set[ir.Node] = set()
    outputs = {value for graph in scope.graphs(model) for value in graph.outputs}
    for node in scope.nodes(model):
        if outputs.isdisjoint(node.outputs) and _is_constant(node, found):
            found.add(node)
    return found


def _is_constant(node: ir.Node, found: set[ir.Node]) -> bool:
    """True for a Constant, and for a deterministic node that reads only constants and ``found``."""
    if node.op_type == "Constant" and not node.domain:
        return True
    read = [value for value in node.inputs if value is not None]
    return (
        bool(read)
        and not scope.carries_graphs(node)
        and opset.is_deterministic(node)
        and all(
            value.producer() in found or constants.tensor_of(value) is not None for value in read
        )
    )
