"""What only a rewritten part reads: the question of a closed match, for parts of any width."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir import scope


def is_closed(interior: Iterable[ir.Node], root: ir.Node) -> bool:
    """True if only ``interior`` and ``root`` read the results of ``interior``, in one graph.

    Patterns have a fixed number of operands; rules over a Concat of any number ask here.
    """
    nodes = dict.fromkeys(interior)
    for node in nodes:
        if node.graph is not root.graph:
            return False
        for value in node.outputs:
            if value.is_graph_output():
                return False
            if any(use is not root and use not in nodes for use in scope.consumers(value)):
                return False
    return True
