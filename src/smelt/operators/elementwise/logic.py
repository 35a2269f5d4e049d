"""Rows of comparisons, logic, bit operations, selection, and conversions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smelt.operators.elementwise.row import Rounding, Row
from smelt.operators.numeric import Arithmetic, Number


def _exact_row(name: str, operands: int | None = 2, **facts: Any) -> Row:
    """Return the row of an operator that rounds nothing."""
    return Row(name, operands=operands, rounding=Rounding.EXACT, **facts)


def _test(name: str, array: np.ufunc, text: str, **facts: Any) -> Row:
    """Return the row of a comparison of two numbers."""
    return _exact_row(name, array=array, floats=text, integers=text, is_test=True, **facts)


def _logic(name: str, array: np.ufunc, text: str, operands: int = 2) -> Row:
    """Return the row of an operator on booleans."""
    commutative = operands == 2
    return _exact_row(
        name, operands, array=array, booleans=text, is_test=True, commutative=commutative
    )


def _bits(name: str, array: np.ufunc, text: str, operands: int = 2) -> Row:
    """Return the row of an operator on the bits of integers."""
    return _exact_row(name, operands, array=array, integers=text, commutative=operands == 2)


def is_infinite(
    m: Arithmetic, x: Number, *, detect_negative: int = 1, detect_positive: int = 1
) -> Number:
    """True for the infinities of the requested signs."""
    positive, negative = m.equal(x, math.inf), m.equal(x, -math.inf)
    if detect_positive and detect_negative:
        return positive | negative
    if detect_positive or detect_negative:
        return positive if detect_positive else negative
    return positive & negative


ROWS = (
    _logic("And", np.logical_and, "{0} && {1}"),
    _exact_row("BitShift"),
    _bits("BitwiseAnd", np.bitwise_and, "(@t)({0} & {1})"),
    _bits("BitwiseNot", np.invert, "(@t)~{0}", 1),
    _bits("BitwiseOr", np.bitwise_or, "(@t)({0} | {1})"),
    _bits("BitwiseXor", np.bitwise_xor, "(@t)({0} ^ {1})"),
    _exact_row("Cast", 1),
    _exact_row("Clip", 1),
    _test("Equal", np.equal, "{0} == {1}", booleans="{0} == {1}", commutative=True),
    _test("Greater", np.greater, "{0} > {1}"),
    _test("GreaterOrEqual", np.greater_equal, "{0} >= {1}"),
    _exact_row("Identity", 1),
    _exact_row("IsInf", 1, formula=is_infinite, is_test=True),
    _exact_row("IsNaN", 1, array=np.isnan, floats="{0} != {0}", is_test=True),
    _test("Less", np.less, "{0} < {1}"),
    _test("LessOrEqual", np.less_equal, "{0} <= {1}"),
    _logic("Not", np.logical_not, "!{0}", 1),
    _logic("Or", np.logical_or, "{0} || {1}"),
    _exact_row("Where", 3, array=np.where, booleans="{0} ? {1} : {2}"),
    _logic("Xor", np.logical_xor, "{0} != {1}"),
)
