"""Replace Sum by Add: ONNX Runtime 1.32 crashes while it opens a float16 model with a Sum.

Its layout optimizer mistakes a Sum of which an operand is a Cast for a node that it inserted.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import provenance, scope
from smelt.ir.names import names_of

FIRST_BROADCAST = 8
"""The first opset whose Sum broadcasts; Add does since opset 7."""


def add_instead_of_sum(model: ir.Model) -> None:
    """Replace each Sum of two or more values by additions, in place."""
    if model.opset_imports.get("", 1) < FIRST_BROADCAST:
        return
    for graph in list(scope.graphs(model)):
        for node in list(graph):
            if node.op_type == "Sum" and not node.domain and len(node.inputs) > 1:
                _add(model, graph, node)


def _add(model: ir.Model, graph: ir.Graph, node: ir.Node) -> None:
    """Turn the Sum ``node`` into additions in the order of its operands.

    ``a + b + c`` becomes ``Add(Add(a, b), c)``; ``node`` itself becomes the last Add.
    """
    first, *others, last = node.inputs
    for other in others:
        partial = ir.Node("", "Add", [first, other], num_outputs=1)
        provenance.stamp(partial, provenance.merge([node], "add_instead_of_sum"))
        graph.insert_before(node, partial)
        first = partial.outputs[0]
        first.name = names_of(model).free(f"{node.outputs[0].name}_part")
        first.type = node.outputs[0].type
    node.resize_inputs(2)
    node.replace_input_with(0, first)
    node.replace_input_with(1, last)
    node.op_type = "Add"
