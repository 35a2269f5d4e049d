"""Rows of sums, products, quotients, extrema, and operators that change sign or magnitude."""

from __future__ import annotations

import numpy as np

from smelt.operators.elementwise.row import Rounding, Row
from smelt.operators.numeric import Arithmetic, Number

EXACT, PRODUCT, ONCE = Rounding.EXACT, Rounding.PRODUCT, Rounding.ONCE


def mod(m: Arithmetic, x: Number, y: Number, *, fmod: int) -> Number:
    """Return the remainder with the sign of the divisor; with ``fmod``, that of the dividend."""
    r = m.op("Fmod", x, y)
    if fmod:
        return r
    floored = m.where(m.equal(r < 0.0, y < 0.0), r, r + y)
    zero = m.op("Abs", r)
    return m.where(m.equal(r, 0.0), m.where(y < 0.0, -zero, zero), floored)


def power(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``x`` to the power ``y`` for floats, as C's ``pow``.

    Where one exponent of 0.5 applies to many elements, NumPy computes the square root, which gives
    NaN for -inf and -0 for -0.
    """
    halves = np.equal(y, 0.5)
    if np.any(halves):
        x = np.where(halves & (np.equal(x, -np.inf) | np.equal(x, 0)), np.abs(x), x)
    return np.asarray(np.power(x, y, out))


ROWS = (
    Row(
        "Abs",
        array=np.absolute,
        floats="fabs@f({0})",
        integers="{0} < 0 ? (@t)(0 - (@m){0}) : {0}",
        unsigned="{0}",
        rounding=EXACT,
        primitive="abs",
    ),
    Row(
        "Add",
        operands=2,
        array=np.add,
        floats="{0} + {1}",
        integers="(@t)((@m){0} + (@m){1})",
        rounding=PRODUCT,
        commutative=True,
    ),
    Row("Ceil", array=np.ceil, floats="ceil@f({0})", rounding=EXACT, primitive="ceil"),
    Row("Div", operands=2, array=np.divide, floats="{0} / {1}", rounding=ONCE),
    Row("Floor", array=np.floor, floats="floor@f({0})", rounding=EXACT, primitive="floor"),
    Row(
        "Max",
        operands=None,
        array=np.maximum,
        floats="({0} > {1} || {0} != {0}) ? {0} : {1}",
        integers="{0} > {1} ? {0} : {1}",
        rounding=EXACT,
        commutative=True,
    ),
    Row("Mean", operands=None, commutative=True),
    Row(
        "Min",
        operands=None,
        array=np.minimum,
        floats="({0} < {1} || {0} != {0}) ? {0} : {1}",
        integers="{0} < {1} ? {0} : {1}",
        rounding=EXACT,
        commutative=True,
    ),
    Row("Mod", operands=2, formula=mod, rounding=EXACT),
    Row(
        "Mul",
        operands=2,
        array=np.multiply,
        floats="{0} * {1}",
        integers="(@t)((@m){0} * (@m){1})",
        rounding=PRODUCT,
        commutative=True,
    ),
    Row("Neg", array=np.negative, floats="-{0}", integers="(@t)(0 - (@m){0})", rounding=EXACT),
    Row("Pow", operands=2, array=power, floats="pow@f({0}, (@t){1})"),
    Row("Reciprocal", array=np.reciprocal, floats="1 / {0}", rounding=ONCE),
    Row("Round", array=np.rint, floats="rint@f({0})", rounding=EXACT),
    Row(
        "Sign",
        array=np.sign,
        floats="{0} != {0} ? {0} : (@t)(({0} > 0) - ({0} < 0))",
        integers="(@t)(({0} > 0) - ({0} < 0))",
        unsigned="(@t)({0} > 0)",
        rounding=EXACT,
        primitive="sign",
    ),
    Row("Sqrt", array=np.sqrt, floats="sqrt@f({0})", rounding=ONCE, primitive="sqrt"),
    Row(
        "Sub",
        operands=2,
        array=np.subtract,
        floats="{0} - {1}",
        integers="(@t)((@m){0} - (@m){1})",
        rounding=PRODUCT,
    ),
    Row("Sum", operands=None, commutative=True),
)
