"""Find sizes that a convolution computes.

They are positive, because ONNX Runtime refuses a convolution with an empty result.
"""

from __future__ import annotations

from itertools import islice

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.same_shape import Dim, same_dim

FIRST_NODES = 1000
"""The search ends after this many nodes, to save time: encoders begin with their convolutions. A
size that a later Conv computes is not found, so a rewrite is missed, but none is wrong."""


def is_conv_size(dim: Dim, graph: ir.Graph) -> bool:
    """True if ``dim`` is a spatial size of the result of a Conv near the beginning of ``graph``.

    ONNX Runtime refuses an input that is smaller than the kernel, so the size is at least 1
    whenever the model runs. A Conv whose result nobody reads does not count: the runtime removes
    it, and refuses nothing. A pool does not count either: it may return an empty result.
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
