"""``smelt.Atan`` and similar: functions that runtimes have in single precision only.

The inverse functions of angles use the arc tangent (DLMF 4.23), those of hyperbolas use logarithms
(DLMF 4.37), each in a form without cancellation.
"""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.numeric import polynomial

SERIES = tuple((-1) ** n / (2 * n + 1) for n in range(14))
"""Coefficients of ``atan(x) / x`` in x * x; its argument is at most tan(pi / 16)."""

LARGE = 2.0**28
"""Beyond this, ``x * x + 1`` equals ``x * x``."""


def tan(m: Arithmetic, x: Number) -> Number:
    """Return the tangent: sine over cosine."""
    return m.sin(x) / m.cos(x)


def atan(m: Arithmetic, x: Number) -> Number:
    """Return the arc tangent by its series, after three reductions of the argument.

    Beyond 1, ``atan(x) = pi / 2 - atan(1 / x)``. Then ``tan(t / 2) = r / (sqrt(r * r + 1) + 1)``
    for ``r = tan(t)`` halves the angle twice.
    """
    size = m.abs(x)
    ratio = m.where(size > 1.0, 1.0 / size, size)
    for _ in range(2):
        ratio = ratio / (m.sqrt(ratio * ratio + 1.0) + 1.0)
    angle = ratio * polynomial(SERIES[::-1], ratio * ratio) * 4.0
    return _signed(m, x, m.where(size > 1.0, math.pi / 2 - angle, angle))


def asin(m: Arithmetic, x: Number) -> Number:
    """Return the arc tangent of ``x / sqrt(1 - x * x)``; NaN beyond 1."""
    return atan(m, x / m.sqrt((1.0 - x) * (x + 1.0)))


def acos(m: Arithmetic, x: Number) -> Number:
    """Return twice the arc tangent of ``sqrt((1 - x) / (1 + x))``; NaN beyond 1."""
    return atan(m, m.sqrt((1.0 - x) / (x + 1.0))) * 2.0


def sinh(m: Arithmetic, x: Number) -> Number:
    """Return the hyperbolic sine by ``expm1``; from 40 on, by the exponential in two halves."""
    size = m.abs(x)
    bounded = m.minimum(size, 40.0)
    expm1_of_size = m.expm1(bounded)
    by_expm1 = (expm1_of_size + expm1_of_size / (expm1_of_size + 1.0)) * 0.5
    exp_of_half = m.exp(size * 0.5)
    return _signed(m, x, m.where(size < 40.0, by_expm1, exp_of_half * 0.5 * exp_of_half))


def cosh(m: Arithmetic, x: Number) -> Number:
    """Return the hyperbolic cosine by ``exp``; from 40 on, by the exponential in two halves."""
    size = m.abs(x)
    exp_bounded, exp_of_half = m.exp(m.minimum(size, 40.0)), m.exp(size * 0.5)
    return m.where(
        size < 40.0, (exp_bounded + 1.0 / exp_bounded) * 0.5, exp_of_half * 0.5 * exp_of_half
    )


def asinh(m: Arithmetic, x: Number) -> Number:
    """Return the inverse hyperbolic sine by ``log1p``; from ``LARGE`` on, ``log(2 x)``."""
    size = m.abs(x)
    bounded = m.minimum(size, LARGE)
    square = bounded * bounded
    near = m.log1p(bounded + square / (m.sqrt(square + 1.0) + 1.0))
    return _signed(m, x, m.where(size < LARGE, near, m.log(size) + math.log(2)))


def acosh(m: Arithmetic, x: Number) -> Number:
    """Return the inverse hyperbolic cosine by ``log1p``; from ``LARGE`` on, ``log(2 x)``; NaN below
    1.
    """
    above = m.minimum(x, LARGE) - 1.0
    near = m.log1p(above + m.sqrt(above * (above + 2.0)))
    return m.where(x < 1.0, math.nan, m.where(x < LARGE, near, m.log(x) + math.log(2)))


def atanh(m: Arithmetic, x: Number) -> Number:
    """Return ``log1p(2 x / (1 - x)) / 2``, the inverse hyperbolic tangent; NaN beyond 1."""
    size = m.abs(x)
    return _signed(m, x, m.log1p((size + size) / (1.0 - size)) * 0.5)


def _signed(m: Arithmetic, x: Number, size: Number) -> Number:
    """Return ``size`` with the sign of ``x``; a zero keeps its sign."""
    return m.where(m.equal(x, 0.0), x, m.where(x < 0.0, -size, size))


OPERATORS = (
    elementwise("Tan", tan, "Tangent of doubles"),
    elementwise("Atan", atan, "Arc tangent of doubles"),
    elementwise("Asin", asin, "Arc sine of doubles"),
    elementwise("Acos", acos, "Arc cosine of doubles"),
    elementwise("Sinh", sinh, "Hyperbolic sine of doubles"),
    elementwise("Cosh", cosh, "Hyperbolic cosine of doubles"),
    elementwise("Asinh", asinh, "Inverse hyperbolic sine of doubles"),
    elementwise("Acosh", acosh, "Inverse hyperbolic cosine of doubles"),
    elementwise("Atanh", atanh, "Inverse hyperbolic tangent of doubles"),
)
