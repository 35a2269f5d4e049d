"""Conjugate an operand inside of a complex DotGeneral.

    before   Mul(x, [1, -1]) ─> t    DotGeneral<pairs=1>(t, w) ─> y
    after    DotGeneral<pairs=1, lhs_conj=1>(x, w) ─> y

Complex numbers are pairs of real and imaginary parts in the last dim. The product reads a matrix of
each pair on its right, so conjugates cost it no more than other signs.

Needs    (1) a product of pairs; (2) factors 1 and -1 along the last dim alone, which broadcast
         nothing.
Keeps    (1) a conjugate with other readers.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.operators.dot_general import OPERATOR
from smelt.passes.base import rule_pass

_conjugate = op("Mul", var("x"), const(name="signs"), commutative=True)


@rule(op("DotGeneral", _conjugate, var("rhs"), domain="smelt"), same_shape=True)  # keeps 1
def conjugated_lhs(m: Match, b: Builder) -> Replacement:
    """Read the left operand before it is conjugated."""
    return _folded(m, b, (m["x"], m["rhs"]), "lhs_conj")


@rule(op("DotGeneral", var("lhs"), _conjugate, domain="smelt"), same_shape=True)  # keeps 1
def conjugated_rhs(m: Match, b: Builder) -> Replacement:
    """Read the right operand before it is conjugated."""
    return _folded(m, b, (m["lhs"], m["x"]), "rhs_conj")


def _folded(m: Match, b: Builder, operands: tuple[ir.Value, ir.Value], flag: str) -> Replacement:
    """Return the product of ``operands`` with the attribute ``flag`` flipped."""
    attributes, x = OPERATOR.attributes_of(m.root), m["x"]
    if not attributes["pairs"]:  # needs 1
        return Miss("the operands are not complex")
    signs = m.constants.get(m["signs"])
    if signs is None or x.shape is None or not x.shape or x.shape[-1] != 2:
        return Miss("the last dim is not known to hold two parts")
    if signs.size != 2 or signs.ndim > len(x.shape):  # needs 2
        return Miss("the factors differ along other dims, or broadcast the operand")
    if signs.shape[-1] != 2 or not np.array_equal(signs.reshape(2), [1, -1]):
        return Miss("the factors do not conjugate each number")
    given = [each for name, each in m.root.attributes.items() if name != flag]
    flipped = [] if attributes[flag] else [ir.AttrInt64(flag, 1)]
    return b.add(ir.Node("smelt", "DotGeneral", operands, [*given, *flipped]))[0]


fold_conjugate = rule_pass("fold_conjugate", __doc__, [conjugated_lhs, conjugated_rhs])
