"""Add a constant to a product before the Reshape that splits its rows, not after it.

    before   MatMul ─> p: B,S,H*D ─> Reshape(B,S,H,D) ─> Add(c: H,D) ─> y
    after    MatMul ─> p ─> Add(c: H*D) ─> Reshape(B,S,H,D) ─> y

Other passes and runtimes recognize a product directly followed by its bias as one linear layer. The
product may also be one part that a Split takes.

Needs    (1) a Reshape that only splits the last dim, into known sizes; (2) a constant that varies
         along these two dims only.
Keeps    (1) constants that vary along other dims; (2) products of dequantized operands, which
         runtimes compute on integers unless a float is added directly; (3) products and Reshapes
         with other readers.
"""

from __future__ import annotations

import numpy as np

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.ir.walk import producer_of
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.quantize.quantized_groups import is_integer_product

_split = op("Reshape", var("product"), var("shape"), name="split")  # keeps 3


@rule(
    op("Add", _split, const(name="c", limit=None), commutative=True),
    same_shape=True,
    needs=("MatMul",),
)
def bias_of_split_rows(m: Match, b: Builder) -> Replacement:
    """Add the flattened constant to the product, then reshape."""
    before, after, c = m["product"].shape, m["split"].shape, m.array("c", limit=None)
    parts = producer_of(m["product"], "Split")
    product = producer_of(m["product"] if parts is None else parts.inputs[0], "MatMul")
    if product is None or not scope.has_one_use(m["product"]):  # keeps 3
        return None
    if is_integer_product(product):  # keeps 2
        return Miss("the operands of the product are dequantized, but the constant is not")
    if before is None or after is None:
        return Miss("the rank before or behind the Reshape is unknown")
    if c is None:
        return Miss("the added operand is not constant")
    if len(after) != len(before) + 1:
        return Miss("the Reshape does not split one dim into two")
    heads, size = after[-2], after[-1]
    # needs 1
    if not (isinstance(heads, int) and isinstance(size, int)) or before[-1] != heads * size:
        return Miss("the Reshape does not split the last dim into two constant sizes")
    if not all(map(same_dim, before.dims[:-1], after.dims[:-2])):
        return Miss("the Reshape is not proved to keep the dims before the last")
    if c.ndim > len(after) or any(dim != 1 for dim in c.shape[:-2]):  # needs 2, keeps 1
        return Miss("the constant varies along a dim before the last two")
    row = np.broadcast_to(c.reshape(c.shape[-2:]), (heads, size)).reshape(-1)
    added = b.op("Add", m["product"], b.constant(np.ascontiguousarray(row)))
    return b.like(m.node("split"), added, m["shape"])


hoist_bias = rule_pass("hoist_bias", __doc__, [bias_of_split_rows], exactness=EXACT)
