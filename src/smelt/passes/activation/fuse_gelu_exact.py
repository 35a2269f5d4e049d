"""Fuse ``x * (1 + erf(x / sqrt(2))) / 2``, in every spelling, into one ``Gelu``.

    before   x ─┬─> Div(·, sqrt(2)) ─> Erf ─> Add(·, 1) ─┐
                └────────────────────────────────────────┴─> Mul ─> Mul(·, 0.5) ─> y
    after    x ─> Gelu ─> y

Needs    (1) opset 20, where Gelu begins; (2) constants equal to 0.5, 1, sqrt(2) or sqrt(1/2)
         within 4 ulp of their dtype. The factor 0.5 may be at any of three places, and
         ``1 + erf(z)`` may be written ``1 - erf(-z)`` (JAX's erfc).
Keeps    (1) constants that differ by more; (2) a constant that raises the rank; (3) an Erf with
         other readers; (4) doubles, because ONNX defines Gelu with float32 constants.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, Pattern, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass

ULP = 4  # needs 2
"""Tolerance for constants: exporters compute them in float32 or round them on the way."""

_x = var("x")


def number(value: float) -> Pattern:
    """Match a constant of one element within ``ULP`` of ``value``."""
    return const(value, ulp=ULP)  # keeps 1


def mul(a: Pattern, b: Pattern) -> Op:
    """Match a product with its operands in either order."""
    return op("Mul", a, b, commutative=True)


def half(a: Pattern) -> OneOf:
    """Match ``a / 2``, written as a product or a quotient."""
    return one_of(mul(a, number(0.5)), op("Div", a, number(2.0)))


def half_x_times(gate: Pattern) -> OneOf:
    """Match ``x * gate / 2`` with the factor 0.5 at any of three places."""
    return one_of(half(mul(_x, gate)), mul(_x, half(gate)), mul(half(_x), gate))


def _over_root_two(a: Pattern, sign: float = 1.0) -> OneOf:
    """Match ``a / (sign * sqrt(2))``, written as a product or a quotient."""
    return one_of(mul(a, number(sign * 0.5**0.5)), op("Div", a, number(sign * 2.0**0.5)))


_minus = one_of(
    _over_root_two(op("Neg", _x)), op("Neg", _over_root_two(_x)), _over_root_two(_x, sign=-1.0)
)
_gate = one_of(
    op("Add", op("Erf", _over_root_two(_x)), number(1.0), commutative=True),
    op("Sub", number(1.0), op("Erf", _minus)),
)


_gate_by_erfc = op("Erfc", _minus, domain="smelt")


@rule(one_of(half_x_times(_gate), half_x_times(_gate_by_erfc)), min_opset=20)  # needs 1, keeps 2, 3
def gelu(m: Match, b: Builder) -> Replacement:
    """Replace the matched arithmetic by Gelu."""
    if m["x"].dtype == ir.DataType.DOUBLE:  # keeps 4
        return Miss("ONNX defines Gelu with float32 constants")
    return b.op("Gelu", m["x"])


fuse_gelu_exact = rule_pass(
    "fuse_gelu_exact",
    __doc__,
    [gelu],
    exactness=rounding(
        4, "in ulp of x: for negative x, terms cancel, so results have no relative bound"
    ),
    source="Core ML MIL: common::fuse_gelu_exact",
)
