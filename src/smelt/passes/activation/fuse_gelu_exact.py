"""Fuse ``x * (1 + erf(x / sqrt(2))) / 2``, in every spelling, into one ``Gelu``.

    before   x ─┬─> Div(·, sqrt(2)) ─> Erf ─> Add(·, 1) ─┐
                └────────────────────────────────────────┴─> Mul ─> Mul(·, 0.5) ─> y
    after    x ─> Gelu ─> y

Needs    (1) opset 20, where Gelu begins; (2) constants equal to 0.5, 1, sqrt(2) or sqrt(1/2)
         within a few units in the last place of their dtype. The half may stand at any of its
         three places, and ``1 + erf(z)`` may be written ``1 - erf(-z)``, as JAX's erfc is.
Keeps    (1) constants that are only near; (2) a constant that raises the rank; (3) an Erf that
         others read; (4) doubles, because ONNX defines Gelu with float32 constants.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, Pattern, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass

ULP = 4  # needs 2
"""Exporters compute the constants in float32 or round them on the way."""

_x = var("x")


def number(value: float) -> Pattern:
    """A constant of one element close to ``value``."""
    return const(value, ulp=ULP)  # keeps 1


def mul(a: Pattern, b: Pattern) -> Op:
    """A product, in either order."""
    return op("Mul", a, b, commutative=True)


def half(a: Pattern) -> OneOf:
    """``a / 2``."""
    return one_of(mul(a, number(0.5)), op("Div", a, number(2.0)))


def half_x_times(gate: Pattern) -> OneOf:
    """``x * gate / 2``, the half at any place."""
    return one_of(half(mul(_x, gate)), mul(_x, half(gate)), mul(half(_x), gate))


def _over_root_two(a: Pattern, sign: float = 1.0) -> OneOf:
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
    if m["x"].dtype == ir.DataType.DOUBLE:  # keeps 4
        return Miss("the body of Gelu has its constants in float32")
    return b.op("Gelu", m["x"])


fuse_gelu_exact = rule_pass(
    "fuse_gelu_exact",
    __doc__,
    [gelu],
    exactness=rounding(
        4, "of x: results of negative x, whose terms cancel, have no bound of their own"
    ),
    source="Core ML MIL: common::fuse_gelu_exact",
)
