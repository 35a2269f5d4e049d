"""Expand operators for which ONNX Runtime is inaccurate at small results that the model uses.

``jax.nn.sigmoid`` is accurate to a few ulp down to the smallest numbers; ONNX Runtime's Sigmoid is
not. Some readers depend on the difference, such as Log. They are known only after the whole
function is lowered. The pass ``fuse-sigmoid`` restores the operator for targets that compute it
accurately.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.rewrite import Rewriter
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.runtime_defects import INACCURATE_TAILS, reader_of_relative_error

OPERATORS = frozenset(op_type for op_type, _ in INACCURATE_TAILS)


def expand_inaccurate(model: ir.Model, shapes: ShapeInference) -> None:
    """Expand each operator of ``INACCURATE_TAILS`` whose relative error a reader depends on."""
    nodes = [node for node in scope.nodes(model) if not node.domain and node.op_type in OPERATORS]
    inaccurate = [node for node in nodes if reader_of_relative_error(node.op_type, node.outputs[0])]
    rewriter = Rewriter(model, shapes, Constants())
    for node in inaccurate:
        (result,) = node.outputs
        assert result.dtype is not None
        builder = rewriter.builder(node, [node], "written out")
        expansion = INACCURATE_TAILS[node.op_type, result.dtype](builder, node.inputs, {})
        assert expansion is not None
        rewriter.replace(node, expansion, trust_shape=True)
    rewriter.flush()
