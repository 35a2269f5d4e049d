"""Special functions, as operators of the ``smelt`` domain that any runtime gets as functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

OPERATORS = {
    "digamma": "Digamma",
    "lgamma": "Lgamma",
}
"""Primitives that one operator computes, element by element."""


def _lower(name: str) -> Callable[..., ir.Value]:
    return lambda cx, *operands: cx.op(name, *operands, domain="smelt")


for _primitive, _name in OPERATORS.items():
    lowers(_primitive, broadcasts=True)(_lower(_name))

# M. Giles, "Approximating the erfinv function" (2010), single precision, highest power first.
CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


@lowers("erf_inv")
def erf_inv(cx: Lowering, x: ir.Value) -> ir.Value:
    """Giles' polynomials in ``w = -log(1 - x * x)``; infinite at 1 and -1."""
    assert x.dtype is not None
    if x.dtype == ir.DataType.DOUBLE:
        raise cx.unsupported("the polynomials reach single precision only")
    narrow, x = x.dtype, cx.cast(x, ir.DataType.FLOAT)
    one = cx.const_like(1, x)
    product = cx.op("Mul", cx.op("Sub", one, x), cx.op("Add", one, x))
    w = cx.op("Neg", cx.op("Log", product))
    central = _polynomial(cx, CENTRAL, cx.op("Sub", w, cx.const_like(2.5, x)))
    tail = _polynomial(cx, TAIL, cx.op("Sub", cx.op("Sqrt", w), cx.const_like(3, x)))
    factor = cx.op("Where", cx.op("Less", w, cx.const_like(5, x)), central, tail)
    ends = cx.op("Equal", cx.op("Abs", x), one)
    infinite = cx.op("Mul", x, cx.const_like(np.inf, x))
    return cx.cast(cx.op("Where", ends, infinite, cx.op("Mul", factor, x)), narrow)


def _polynomial(cx: Lowering, coefficients: tuple[float, ...], x: ir.Value) -> ir.Value:
    """Horner's scheme."""
    value = cx.const_like(coefficients[0], x)
    for coefficient in coefficients[1:]:
        value = cx.op("Add", cx.op("Mul", value, x), cx.const_like(coefficient, x))
    return value
