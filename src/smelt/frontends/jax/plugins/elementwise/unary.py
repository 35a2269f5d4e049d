"""Lower elementwise operators of one operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers
from smelt.ir.build import Builder
from smelt.operators import numeric
from smelt.operators.elementwise import Formula
from smelt.operators.formula import Nodes, Tensor


@lowers("neg", broadcasts=True)
def neg(cx: Lowering, x: ir.Value) -> ir.Value:
    """Lower ``neg``; unsigned integers are subtracted from 0."""
    if x.dtype is not None and x.dtype.is_integer() and not x.dtype.is_signed():
        return cx.op("Sub", cx.const_like(0, x), x)  # Neg takes no unsigned numbers.
    return cx.op("Neg", x)


@lowers("square", broadcasts=True)
def square(cx: Lowering, x: ir.Value) -> ir.Value:
    """Lower ``square`` to a product."""
    return cx.op("Mul", x, x)


@lowers("rsqrt", broadcasts=True)
def rsqrt(cx: Lowering, x: ir.Value, *, accuracy: object) -> ir.Value:
    """Lower ``rsqrt`` to Reciprocal(Sqrt)."""
    return cx.op("Reciprocal", cx.op("Sqrt", x))


@lowers("cbrt", broadcasts=True)
def cbrt(cx: Lowering, x: ir.Value, *, accuracy: object) -> ir.Value:
    """Return the cube root, as a power of 1/3 in float64: float32 would not be accurate enough."""
    wide = cx.cast(x, np.dtype(np.float64))
    root = cx.op("Pow", cx.op("Abs", wide), cx.const_like(1 / 3, wide))
    signed = cx.op("Where", cx.op("Less", wide, cx.const_like(0, wide)), cx.op("Neg", root), root)
    assert x.dtype is not None
    return cx.cast(signed, x.dtype)


@lowers("exp2", broadcasts=True)
def exp2(cx: Lowering, x: ir.Value, *, accuracy: object) -> ir.Value:
    """Lower ``exp2`` to a power of 2."""
    return cx.op("Pow", cx.const_like(2, x), x)


FORMULAS = {"expm1": numeric.expm1, "log1p": numeric.log1p}
"""Primitives that are lowered to a formula of several ONNX operators."""


def _lower_formula(formula: Formula) -> Callable[..., ir.Value]:
    """Return the lowering to the nodes of ``formula``."""

    def lower(cx: Lowering, x: ir.Value, *, accuracy: object) -> ir.Value:
        """Lower the primitive to the nodes of ``formula``."""
        m = Nodes(cast(Builder, cx))  # cx adds nodes like a Builder, and checks their types
        result: Tensor = formula(m, m.tensor(x))
        return result.value

    return lower


for _primitive, _formula in FORMULAS.items():
    lowers(_primitive, broadcasts=True)(_lower_formula(_formula))


@lowers("is_finite", broadcasts=True)
def is_finite(cx: Lowering, x: ir.Value) -> ir.Value:
    """Lower ``is_finite`` to |x| < inf."""
    return cx.op("Less", cx.op("Abs", x), cx.const_like(np.inf, x))


@lowers("not", broadcasts=True)
def not_(cx: Lowering, x: ir.Value) -> ir.Value:
    """Lower ``not`` to Not, or BitwiseNot for integers."""
    return cx.op("Not" if x.dtype == ir.DataType.BOOL else "BitwiseNot", x)


@lowers("round", broadcasts=True)
def round_(cx: Lowering, x: ir.Value, *, rounding_method: int) -> ir.Value:
    """Round to the nearest integer, ties to even or away from zero; the sign of zero is kept."""
    if int(rounding_method) == 1:  # to the nearest even
        return cx.op("Round", x)
    magnitude = cx.op("Abs", x)
    down = cx.op("Floor", magnitude)
    half = cx.const_like(0.5, x)
    up = cx.op("GreaterOrEqual", cx.op("Sub", magnitude, down), half)
    away = cx.op("Where", up, cx.op("Add", down, cx.const_like(1, x)), down)
    signed = cx.op("Where", cx.op("Less", x, cx.const_like(0, x)), cx.op("Neg", away), away)
    # Below a half the result is a zero with the sign of x.
    small = cx.op("Mul", x, cx.const_like(0, x))
    return _where_or_else(cx, cx.op("Less", magnitude, half), signed, small)


def _where_or_else(cx: Lowering, test: ir.Value, otherwise: ir.Value, x: ir.Value) -> ir.Value:
    """Return ``x`` where ``test`` holds, else ``otherwise``.

    ONNX Runtime's Where keeps -0 of its last operand only, so ``x`` is the last one.
    """
    return cx.op("Where", cx.op("Not", test), otherwise, x)


@lowers("integer_pow", broadcasts=True)
def integer_pow(cx: Lowering, x: ir.Value, *, y: int) -> ir.Value:
    """Return the power by repeated squaring in JAX's order, so the bits agree."""
    if y == 0:
        return cx.op("Expand", cx.const_like(1, x), cx.op("Shape", x))
    power, result, count = x, None, abs(y)
    while count:
        if count & 1:
            result = power if result is None else cx.op("Mul", result, power)
        count >>= 1
        if count:
            power = cx.op("Mul", power, power)
    assert result is not None
    return result if y > 0 else cx.op("Div", cx.const_like(1, x), result)
