"""Decide whether an operator commutes with Transpose: elementwise ones here, others by tables.

Each handler gets a node whose tensor operands are all transposed by ``perm``. It returns the
permutation of the result and a function that builds the node on the untransposed operands, or None
if the operator does not commute with these operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.operators.elementwise import ELEMENTWISE, FIRST_ONLY
from smelt.passes.layout import transposed_axes, transposed_elements
from smelt.passes.layout.commuted import (
    Commuted,
    Operands,
    Perm,
    Perms,
    first_is_data,
    rebuilt,
)
from smelt.passes.layout.untransposed_operand import Make, untransposed_operand

_SEVERAL_RESULTS = ("Split", "TopK")
"""Operators all of whose results have the operand's layout."""


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


_HANDLERS = {
    "MatMul": first_is_data(_matmul),
    **transposed_axes.HANDLERS,
    **transposed_elements.HANDLERS,
}


def commute(node: ir.Node, perms: Mapping[ir.Value, Perm], constants: Constants) -> Commuted | None:
    """Return ``node`` moved before the Transpose of its operands, or None if that is not possible.

    ``perms`` holds the permutation of each value that is known to be transposed.
    """
    if node.domain:
        return None
    if len(node.outputs) != 1 and node.op_type not in _SEVERAL_RESULTS:
        return None
    perms_of_operands = {
        perms[value] for value in node.inputs if value is not None and value in perms
    }
    if len(perms_of_operands) != 1 or not is_known(node):
        return None
    perm = perms_of_operands.pop()
    if node.op_type in ELEMENTWISE or node.op_type in FIRST_ONLY:
        return _elementwise(node, perm, perms, constants)
    handler = _HANDLERS.get(node.op_type)
    return handler(node, perm, perms, constants) if handler is not None else None


def _elementwise(
    node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
) -> Commuted | None:
    """Commute an elementwise operator if no other operand needs a Transpose in the other layout."""
    first_only = node.op_type in FIRST_ONLY
    if first_only and (node.inputs[0] is None or node.inputs[0] not in perms):
        return None
    others: dict[int, Make] = {}
    for index, value in enumerate(node.inputs):
        if value is None or value in perms or (first_only and index > 0):
            continue
        make = untransposed_operand(value, perm, constants)
        if make is None:
            return None
        others[index] = make

    def build(b: Builder, operands: Operands) -> Sequence[ir.Value]:
        """Return ``node`` on untransposed ``operands``; ``others`` rebuilds the rest to match."""
        untransposed = [others[i](b) if i in others else value for i, value in enumerate(operands)]
        return (b.like(node, *untransposed),)

    return Commuted(perm, build)
