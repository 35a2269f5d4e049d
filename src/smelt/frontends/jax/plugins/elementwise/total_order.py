"""Lower comparisons in the total order: -0 below 0, NaN above all numbers and equal to itself."""

from __future__ import annotations

import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers


@lowers("le_to", broadcasts=True)
def le_to(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return ``a <= b`` in the total order."""
    a, b = _comparable(cx, a), _comparable(cx, b)
    if not _is_float(a):
        return cx.op("LessOrEqual", a, b)
    return cx.op("Or", _is_below(cx, a, b), _is_same_number(cx, a, b))


@lowers("lt_to", broadcasts=True)
def lt_to(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return ``a < b`` in the total order."""
    a, b = _comparable(cx, a), _comparable(cx, b)
    return _is_below(cx, a, b) if _is_float(a) else cx.op("Less", a, b)


@lowers("eq_to", broadcasts=True)
def eq_to(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return ``a == b`` in the total order."""
    a, b = _comparable(cx, a), _comparable(cx, b)
    return _is_same_number(cx, a, b) if _is_float(a) else cx.op("Equal", a, b)


def _comparable(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return booleans as integers and half floats as float32, in the same order."""
    if x.dtype == ir.DataType.BOOL:
        return cx.cast(x, ir.DataType.INT32)
    if x.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return cx.cast(x, ir.DataType.FLOAT)
    return x


def _is_float(x: ir.Value) -> bool:
    """True if ``x`` holds floats."""
    return x.dtype is not None and x.dtype.is_floating_point()


def _is_below(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """True where ``a < b`` in the total order of floats, in which -0 precedes 0 and NaN is last.

    ``Reciprocal`` tells -0 from 0: it gives -inf and inf.
    """
    equal = cx.op("Equal", a, b)
    zeros = cx.op("And", equal, cx.op("Less", cx.op("Reciprocal", a), cx.op("Reciprocal", b)))
    is_last = cx.op("And", cx.op("IsNaN", b), cx.op("Not", cx.op("IsNaN", a)))
    return cx.op("Or", cx.op("Or", cx.op("Less", a, b), zeros), is_last)


def _is_same_number(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """True where both are the same number with the same sign, or both are NaN.

    ``Reciprocal`` tells -0 from 0: it gives -inf and inf.
    """
    equal = cx.op("Equal", a, b)
    signed = cx.op("And", equal, cx.op("Equal", cx.op("Reciprocal", a), cx.op("Reciprocal", b)))
    return cx.op("Or", signed, cx.op("And", cx.op("IsNaN", a), cx.op("IsNaN", b)))
