"""How operators commute with Transpose: elementwise ones here, those with axes by table.

Each handler looks at a node whose tensor operands are all transposed by ``perm`` and answers with
the permutation of the result and a function that builds the node on the operands as they were
before. None means that the operator does not commute, or not with these operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.passes.layout.commuted import Commuted, Operands, Perm, inverse
from smelt.passes.layout.transposed_axes import HANDLERS

_FIRST_ONLY = opset.UNARY | {"Clip", "Dropout", "CastLike"}
"""Operators whose first operand alone has the shape of the result."""


def commute(node: ir.Node, perms: Mapping[ir.Value, Perm], constants: Constants) -> Commuted | None:
    """How ``node`` commutes, if it does; ``perms`` holds the operands known to be transposed."""
    if node.domain or any(a.is_ref() for a in node.attributes.values()):
        return None
    if len(node.outputs) != 1 and node.op_type != "Split":
        return None
    found = {perms[value] for value in node.inputs if value is not None and value in perms}
    if len(found) != 1:
        return None
    perm = found.pop()
    if node.op_type in opset.ELEMENTWISE or node.op_type in _FIRST_ONLY:
        return _elementwise(node, perm, perms, constants)
    handler = HANDLERS.get(node.op_type)
    return handler(node, perm, perms, constants) if handler is not None else None


def _elementwise(
    node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
) -> Commuted | None:
    """Other operands must be scalars, or constants, which are permuted back."""
    first_only = node.op_type in _FIRST_ONLY
    if first_only and (node.inputs[0] is None or node.inputs[0] not in perms):
        return None
    permuted: dict[int, np.ndarray] = {}
    for index, value in enumerate(node.inputs):
        if value is None or value in perms or (first_only and index > 0):
            continue
        if value.shape is not None and len(value.shape) == 0:
            continue
        array = constants.get(value, limit=None)
        if array is None or array.ndim > len(perm):
            return None
        permuted[index] = _untransposed(array, perm)

    def build(b: Builder, operands: Operands) -> Sequence[ir.Value]:
        given = [
            b.constant(permuted[i]) if i in permuted else value for i, value in enumerate(operands)
        ]
        return (b.like(node, *given),)

    return Commuted(perm, build)


def _untransposed(array: np.ndarray, perm: Perm) -> np.ndarray:
    """A broadcasting constant in the layout before the Transpose; scalars stay as they are."""
    if array.size == 1:
        return array.reshape(()) if array.ndim else array
    full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    return np.ascontiguousarray(full.transpose(inverse(perm)))
