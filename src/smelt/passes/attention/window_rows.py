"""Sizes that a convolution leaves: without room for a kernel there is no run."""

from __future__ import annotations

from itertools import islice

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.same_shape import Dim, same_dim

FIRST_NODES = 1000
"""Of a graph, among which encoders have their convolutions; so a look takes no longer in a large
model."""


def is_of_a_convolution(dim: Dim, graph: ir.Graph) -> bool:
    """True if ``dim`` is how many windows a Conv near the beginning of ``graph`` has.

    ONNX Runtime refuses an input without room for one, so that, wherever the model runs at all,
    there is at least one. Pools are not refused: they may leave nothing.
    """
    for node in islice(graph, FIRST_NODES):
        if node.op_type != "Conv" or node.domain not in ("", "ai.onnx"):
            continue
        result = node.outputs[0]
        if result.shape is None or not (scope.consumers(result) or result.is_graph_output()):
            continue
        if any(same_dim(dim, size) for size in result.shape.dims[2:]):
            return True
    return False
