"""Compute only the part of a complex DotGeneral that is read: real or imaginary.

    before   DotGeneral<pairs=1>(x[M,K,2], w[K,N,2]) ─> Slice(..., 0:1) ─> y
    after    Mul(w, [1, -1]) ─> t
             DotGeneral<lhs_contracting=[1,2], rhs_contracting=[0,2]>(x, t) ─> Unsqueeze ─> y

The real part is the sum of ``re * re - im * im``: one real product that also sums over the parts,
with half of the multiplications. The right operand has the signs; for the imaginary part, which is
the sum of ``re * im + im * re``, its two parts also change places. Conjugates change signs.

Needs    (1) a product of pairs and the semiring sum_product; (2) operands of known rank; (3) a
         Slice of one part that cuts no other dim.
Keeps    (1) a product with another reader.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rows import rows_taken
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.slices import cuts_of
from smelt.operators.complex_dot import REAL, Signs, real_dims, signs_of_rows
from smelt.operators.declare import Attributes
from smelt.operators.dot_general import OPERATOR
from smelt.passes.base import rounding, rule_pass

_product = op("DotGeneral", var("lhs"), var("rhs"), domain="smelt", name="product")


@rule(op("Slice", _product, rest=True), same_shape=True)  # keeps 1
def one_part(m: Match, b: Builder) -> Replacement:
    """Replace a complex product and the Slice of one part by a real product."""
    attributes, lhs, rhs = OPERATOR.attributes_of(m.node("product")), m["lhs"], m["rhs"]
    if not attributes["pairs"] or attributes["semiring"] != "sum_product":  # needs 1
        return Miss("the product is not one of complex numbers by sum_product")
    shape, cuts = m.node("product").outputs[0].shape, cuts_of(m.root, m.constants)
    if shape is None or lhs.shape is None or rhs.shape is None or rhs.dtype is None:  # needs 2
        return Miss("the dtype or rank of an operand is unknown")
    last = len(shape) - 1
    if cuts is None or cuts.keys() != {last} or len(rows_taken(2, cuts[last])) != 1:  # needs 3
        return Miss("the Slice does not take one part of each number")
    (part,) = rows_taken(2, cuts[last])
    signs = _signs(attributes, part)
    operand, axis = rhs, len(rhs.shape) - 1
    if part:
        ends, steps = b.const_i64([-(2**31)]), b.const_i64([-1])
        operand = b.op("Slice", rhs, b.const_i64([1]), ends, b.const_i64([axis]), steps)
    if signs != (1, 1):
        operand = b.op("Mul", operand, b.constant(np.array(signs, rhs.dtype.numpy())))
    changed = {**attributes, **real_dims(attributes, len(lhs.shape), len(rhs.shape)), **REAL}
    omitted = (None, 0, (), "sum_product")
    given: dict[str, Any] = {name: value for name, value in changed.items() if value not in omitted}
    real = b.op("DotGeneral", lhs, operand, domain="smelt", **given)
    return b.op("Unsqueeze", real, b.const_i64([last]))


def _signs(attributes: Attributes, part: int) -> Signs:
    """Return the signs of both elements of the right operand: ``[re, im]`` for the real part (0),
    ``[im, re]`` for the imaginary one (1).

    They are the columns of the matrices that the whole product reads.
    """
    (first, second), (swapped, kept) = signs_of_rows(attributes)
    return (first, swapped) if part == 0 else (second, kept)


part_of_complex_dot = rule_pass(
    "part_of_complex_dot",
    __doc__,
    [one_part],
    exactness=rounding(16, "sums may be taken in another order"),
)
