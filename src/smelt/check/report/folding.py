"""Find the nodes whose results depend on constants alone; the page does not draw them."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import constants, opset, scope


def constant_nodes(model: ir.Model) -> set[ir.Node]:
    """Return the nodes that read only constants and return the same results in every run.

    Nodes with inner graphs, and nodes whose result is a graph output, are not among them.
    """
    folded: set[ir.Node] = set()
    outputs = {value for graph in scope.graphs(model) for value in graph.outputs}
    for node in scope.nodes(model):
        if outputs.isdisjoint(node.outputs) and _is_constant(node, folded):
            folded.add(node)
    return folded


def _is_constant(node: ir.Node, folded: set[ir.Node]) -> bool:
    """True for a Constant, and for a deterministic node that reads only constants and results of
    ``folded``.
    """
    if node.op_type == "Constant" and not node.domain:
        return True
    operands = [value for value in node.inputs if value is not None]
    return (
        bool(operands)
        and not scope.carries_graphs(node)
        and opset.is_deterministic(node)
        and all(
            value.producer() in folded or constants.tensor_of(value) is not None
            for value in operands
        )
    )
