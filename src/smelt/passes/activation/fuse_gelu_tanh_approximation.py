"""Fuse the tanh approximation of GELU, in every spelling, into one ``Gelu``.

    before   x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))) / 2
    after    x ─> Gelu(approximate="tanh") ─> y

Needs    (1) opset 20, where Gelu begins; (2) constants equal to those above within 4 ulp of their
         dtype. The cube may be a Pow or two products, x may be factored out of the sum, the
         factor 0.5 may be at any place, and the gate may be sigmoid(2z).
Keeps    (1) constants that differ by more, other powers, inner results with other readers;
         (2) float64, because ONNX defines this Gelu with float32 constants.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, Pattern, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.activation.fuse_gelu_exact import half_x_times, mul, number
from smelt.passes.base import rounding, rule_pass

_x = var("x")
_cubic = number(0.044715)  # needs 2


def _product(a: Pattern, b: Pattern, c: Pattern) -> OneOf:
    """Match ``a * b * c``, multiplied in any order."""
    return one_of(mul(mul(a, b), c), mul(mul(a, c), b), mul(a, mul(b, c)))


def _plus(a: Pattern, b: Pattern) -> Op:
    """Match a sum with its operands in either order."""
    return op("Add", a, b, commutative=True)


_square = one_of(mul(_x, _x), op("Pow", _x, number(2.0)))
_cube = one_of(op("Pow", _x, number(3.0)), mul(_x, _square))
_cubed = one_of(mul(_cubic, _cube), mul(mul(_cubic, _square), _x), mul(mul(_cubic, _x), _square))
_cubed = one_of(_cubed, mul(mul(mul(_cubic, _x), _x), _x))
_squared = one_of(mul(_cubic, _square), mul(mul(_cubic, _x), _x))


def _argument(factor: float) -> OneOf:
    """Match ``factor * (x + 0.044715 * x**3)``, also with x factored out of the sum."""
    scale = number(factor)
    factored = _product(_x, scale, _plus(number(1.0), _squared))
    return one_of(mul(scale, _plus(_x, _cubed)), factored)


_tanh = _plus(number(1.0), op("Tanh", _argument(math.sqrt(2 / math.pi))))
_sigmoid = op("Sigmoid", _argument(2 * math.sqrt(2 / math.pi)))


@rule(one_of(half_x_times(_tanh), mul(_x, _sigmoid)), min_opset=20)  # needs 1, keeps 1
def gelu_tanh(m: Match, b: Builder) -> Replacement:
    """Replace the matched arithmetic by the tanh form of Gelu."""
    if m["x"].dtype == ir.DataType.DOUBLE:  # keeps 2
        return Miss("ONNX defines Gelu with float32 constants")
    return b.op("Gelu", m["x"], approximate="tanh")


fuse_gelu_tanh_approximation = rule_pass(
    "fuse_gelu_tanh_approximation",
    __doc__,
    [gelu_tanh],
    exactness=rounding(
        4, "in ulp of x: for negative x, terms cancel, so results have no relative bound"
    ),
    source="Core ML MIL: common::fuse_gelu_tanh_approximation",
)
