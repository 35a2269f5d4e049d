"""Swap the operands of a DotGeneral if a Transpose then moves their free dims back.

    before   DotGeneral<lhs_contracting=[1], rhs_contracting=[2]>(w[4,8], x[B,S,8]) ─> t[4,B,S]
             t ─> Transpose(1,2,0) ─> y[B,S,4]
    after    DotGeneral<lhs_contracting=[2], rhs_contracting=[1]>(x, w) ─> y

JAX writes the operands of a batched product in either order and transposes the result.

Needs    (1) a permutation with every free dim of the right operand before those of the left.
Keeps    (1) other permutations; (2) a product with other readers. A Transpose remains if the dims
         are still out of order.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.operators.dot_general import OPERATOR, groups
from smelt.passes.base import rounding, rule_pass

_product = op("DotGeneral", var("lhs"), var("rhs"), domain="smelt", name="product")
_SWAPPED = {
    "lhs_contracting": "rhs_contracting",
    "rhs_contracting": "lhs_contracting",
    "lhs_batch": "rhs_batch",
    "rhs_batch": "lhs_batch",
}


@rule(op("Transpose", _product), same_shape=True)  # keeps 2
def transposed_product(m: Match, b: Builder) -> Replacement:
    """Replace a transposed DotGeneral by one with swapped operands, transposed if still needed."""
    lhs, rhs, node = m["lhs"], m["rhs"], m.node("product")
    if lhs.shape is None or rhs.shape is None:
        return Miss("the rank of an operand is unknown")
    attributes = OPERATOR.attributes_of(node)
    if attributes["pairs"]:
        return Miss("the last dim has the parts of complex numbers")
    parts = groups(attributes, len(lhs.shape), len(rhs.shape))
    batch, left, right = len(parts.lhs_batch), len(parts.lhs_free), len(parts.rhs_free)
    perm = opset.attribute(m.root, "perm", m.opset)
    order = list(perm) if perm is not None else list(range(batch + left + right))[::-1]
    free_axes = [axis for axis in order if axis >= batch]
    right_comes_first = all(axis >= batch + left for axis in free_axes[:right])
    if not left or not right or not right_comes_first:  # needs 1, keeps 1
        return Miss(
            "the Transpose does not move the dims of the left operand behind those of the right"
        )
    if lhs.dtype != rhs.dtype and "dtype" not in node.attributes:
        return Miss("the result has the dtype of the left operand, which the swap would change")
    kept_attributes = [
        attribute for attribute in node.attributes.values() if attribute.name not in _SWAPPED
    ]
    swapped = [
        ir.AttrInt64s(_SWAPPED[attribute.name], attribute.as_ints())
        for attribute in node.attributes.values()
        if attribute.name in _SWAPPED
    ]
    result = b.add(ir.Node("smelt", "DotGeneral", (rhs, lhs), [*swapped, *kept_attributes]))[0]
    swapped_order = [_axis_after_swap(axis, batch, left, right) for axis in order]
    return (
        result
        if swapped_order == sorted(swapped_order)
        else b.op("Transpose", result, perm=swapped_order)
    )


def _axis_after_swap(axis: int, batch: int, left: int, right: int) -> int:
    """Return where ``axis`` of the original product is in the product with swapped operands."""
    if axis < batch:
        return axis
    return axis + right if axis < batch + left else axis - left


swap_dot_general = rule_pass(
    "swap_dot_general",
    __doc__,
    [transposed_product],
    exactness=rounding(4, "sums may be taken in another order"),
)
