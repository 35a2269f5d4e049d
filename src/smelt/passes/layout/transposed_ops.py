"""How operators commute with Transpose: elementwise ones here, those with axes by table.

Each handler looks at a node whose tensor operands are all transposed by ``perm`` and answers with
the permutation of the result and a function that builds the node on the operands as they were
before. None means that the operator does not commute, or not with these operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.operators.elementwise import ELEMENTWISE, FIRST_ONLY
from smelt.passes.layout import transposed_axes, transposed_elements, transposed_products
from smelt.passes.layout.commuted import Commuted, Operands, Perm
from smelt.passes.layout.untransposed_operand import Make, untransposed_operand

_SEVERAL_RESULTS = ("Split", "TopK")
"""All of them in the layout of the operand; others mean something by their number of results."""

_HANDLERS = {
    **transposed_axes.HANDLERS,
    **transposed_elements.HANDLERS,
    **transposed_products.HANDLERS,
}


def commute(node: ir.Node, perms: Mapping[ir.Value, Perm], constants: Constants) -> Commuted | None:
    """How ``node`` commutes, if it does; ``perms`` holds the operands known to be transposed."""
    if node.domain:
        return None
    if len(node.outputs) != 1 and node.op_type not in _SEVERAL_RESULTS:
        return None
    found = {perms[value] for value in node.inputs if value is not None and value in perms}
    if len(found) != 1 or not is_known(node):
        return None
    perm = found.pop()
    if node.op_type in ELEMENTWISE or node.op_type in FIRST_ONLY:
        return _elementwise(node, perm, perms, constants)
    handler = _HANDLERS.get(node.op_type)
    return handler(node, perm, perms, constants) if handler is not None else None


def _elementwise(
    node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
) -> Commuted | None:
    """Other operands must be scalars, or get into the other layout without a Transpose."""
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
        given = [others[i](b) if i in others else value for i, value in enumerate(operands)]
        return (b.like(node, *given),)

    return Commuted(perm, build)
