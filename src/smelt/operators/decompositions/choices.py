"""Decompositions of logic, comparisons, Max, Min, Sign and Where."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import SMALL
from smelt.operators.decompositions.row import MOVES, Body, Call, Row, of_floats


def _by_comparison(greater: str, not_less: str) -> Body:
    """Return the body of Max, or of Min, as a Where with comparisons.

    Comparisons with NaN are false. So if ``first > other`` and ``other >= first`` are both false,
    one of them is NaN; the result is then their sum, which is NaN.
    """

    def body(c: Call) -> ir.Value | None:
        """Choose between the result so far and each further operand; None for one operand."""
        first, *others = c.inputs
        if not others:
            return None
        for other in others:
            lesser = other
            if c.is_float():
                lesser = c.op(
                    "Where", c.op(not_less, other, first), other, c.op("Add", first, other)
                )
            first = c.op("Where", c.op(greater, first, other), first, lesser)
        return first

    return body


def _sign(c: Call) -> ir.Value | None:
    """Return 1 above 0, -1 below 0, and the operand itself if it is 0 or NaN; None for unsigned
    integers."""
    dtype = c[0].dtype
    if dtype is None or dtype.numpy().kind == "u":
        return None
    below = c.op("Where", c.op("Less", c[0], 0.0), -1.0, c[0])
    return c.op("Where", c.op("Greater", c[0], 0.0), 1.0, below)


def _as_number(c: Call, index: int) -> ir.Value:
    """Return bool input ``index`` as float32, 0 or 1."""
    return c.b.op("Cast", c[index], to=int(ir.DataType.FLOAT))


def _not_of_bool(c: Call) -> ir.Value:
    """Return True where 1 minus the operand as a number is not 0."""
    number = c.b.op("Sub", c.b.constant(np.asarray(1, np.float32)), _as_number(c, 0))
    return c.b.op("Cast", number, to=int(ir.DataType.BOOL))


def _of_numbers(op_type: str) -> Body:
    """Return the body of And (Mul), Or (Add) or Xor (Sub): it computes with 0 and 1, and the result
    is true where that number is not 0.
    """

    def body(c: Call) -> ir.Value:
        """Compute with 0 and 1, and return a bool."""
        number = c.b.op(op_type, _as_number(c, 0), _as_number(c, 1))
        return c.b.op("Cast", number, to=int(ir.DataType.BOOL))

    return body


def _min(c: Call) -> ir.Value | None:
    """Return the negated maximum of the negated operands, for consumers with Max only."""
    first, *others = (c.op("Mul", value, -1.0) for value in c.inputs)
    for other in others:
        first = c.op("Max", first, other)
    return c.op("Mul", first, -1.0)


def _where_of_constants(c: Call) -> ir.Value | None:
    """Return a Where of two finite constants as a product and a sum; None for other operands."""
    if_true, if_false = (c.constants.get(c[index], SMALL) for index in (1, 2))
    if if_true is None or if_false is None or if_true.dtype.kind != "f" or c[1].dtype is None:
        return None
    with np.errstate(all="ignore"):
        step = if_true - if_false
        exact = np.array_equal(step + if_false, if_true) and np.isfinite(step).all()
    if not exact or not np.isfinite(if_false).all():
        return None
    condition = c.b.op("Cast", c[0], to=int(c[1].dtype))
    return c.b.op("Add", c.b.op("Mul", condition, c.b.constant(step)), c[2])


def _is_finite(c: Call, value: ir.Value | None) -> bool:
    """True if ``value`` is a constant of finite floats, or such a constant after Reshapes and the
    like.
    """
    array = c.constants.get(value, limit=None)
    if array is not None:
        return array.dtype.kind == "f" and bool(np.isfinite(array).all())
    node = None if value is None else value.producer()
    if node is None or node.domain or node.op_type not in MOVES:
        return False
    return _is_finite(c, node.inputs[0])


def _where_of_finite_numbers(c: Call) -> ir.Value | None:
    """Return a Where as ``condition * a + (1 - condition) * b``.

    None unless both operands are surely finite, because 0 times infinity is NaN.
    """
    if c[1].dtype is None or not (_is_finite(c, c[1]) and _is_finite(c, c[2])):
        return None
    condition = c.b.op("Cast", c[0], to=int(c[1].dtype))
    opposite = c.b.op("Sub", c.b.const_like(1, c[1]), condition)
    return c.b.op("Add", c.b.op("Mul", condition, c[1]), c.b.op("Mul", opposite, c[2]))


def _or_equal(op_type: str) -> Body:
    """Return the body of a comparison as ``op_type`` or Equal."""
    return lambda c: c.op("Or", c.op(op_type, c[0], c[1]), c.op("Equal", c[0], c[1]))


ROWS: Mapping[str, tuple[Row, ...]] = {
    "And": (Row("Cast Mul", _of_numbers("Mul")),),
    "GreaterOrEqual": (Row("Or Greater Equal", _or_equal("Greater")),),
    "LessOrEqual": (Row("Or Less Equal", _or_equal("Less")),),
    "Max": (Row("Greater GreaterOrEqual Where Add", _by_comparison("Greater", "GreaterOrEqual")),),
    "Min": (
        Row("Less LessOrEqual Where Add", _by_comparison("Less", "LessOrEqual")),
        Row("Max Mul", of_floats(_min)),
    ),
    "Not": (Row("Cast Sub", _not_of_bool),),
    "Or": (Row("Cast Add", _of_numbers("Add")),),
    "Sign": (Row("Greater Less Where", _sign),),
    "Where": (
        Row("Cast Mul Add", _where_of_constants),
        Row("Cast Sub Mul Add", _where_of_finite_numbers),
    ),
    "Xor": (Row("Cast Sub", _of_numbers("Sub")),),
}
