"""The handler for MatMul: it commutes with a Transpose that keeps the last axis last."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.passes.layout.commuted import Commuted, Handler, Perm, Perms, first_is_data, rebuilt


def _matmul(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute MatMul with a matrix on the right, which multiplies every row of the left operand;
    None for other right operands, or if the Transpose moves the last axis.
    """
    matrix = node.inputs[1]
    if matrix is None or matrix.shape is None or len(matrix.shape) != 2:
        return None
    if len(perm) < 2 or perm[-1] != len(perm) - 1:
        return None
    return Commuted(perm, lambda b, operands: rebuilt(b, node, operands))


HANDLERS: Mapping[str, Handler] = {"MatMul": first_is_data(_matmul)}
