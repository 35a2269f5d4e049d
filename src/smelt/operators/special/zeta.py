"""``smelt.Zeta`` and ``smelt.Polygamma``: Hurwitz' zeta function and derivatives of digamma."""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.special.digamma import digamma
from smelt.operators.special.gamma import lgamma_positive

TERMS = 10
"""Terms summed before the correction by Euler and Maclaurin."""

BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
"""``B(2k)`` for k = 1, 2, ...: DLMF 24.2.4."""


def zeta(m: Arithmetic, s: Number, q: Number) -> Number:
    """Return ``sum((q + k) ** -s)`` over k >= 0; infinite at s = 1, and NaN below it.

    A ``q`` below 0 needs an integral s: the terms below 0 are those of two zeta functions above 0,
    so their number does not matter. A pole is infinite for an even s, NaN for an odd one.
    """
    is_integer = m.equal(m.floor(s), s)
    is_pole = m.equal(m.floor(q), q) & (q <= 0.0)
    is_even = m.equal(m.floor(s * 0.5) * 2.0, s)
    below = q < 0.0
    fraction = q - m.floor(q)
    above = _euler_maclaurin(m, s, m.where(below, fraction, q))
    terms_below_0 = _euler_maclaurin(m, s, 1.0 - fraction) - _euler_maclaurin(m, s, 1.0 - q)
    with_terms_below_0 = above + m.where(is_even, terms_below_0, -terms_below_0)
    value = m.where(below, m.where(is_integer, with_terms_below_0, math.nan), above)
    value = m.where(s < 1.0, math.nan, value)
    value = m.where(is_pole, m.where(is_even & (s < math.inf), math.inf, math.nan), value)
    return m.where(m.equal(s, 1.0), math.inf, value)


def polygamma(m: Arithmetic, n: Number, x: Number) -> Number:
    """Return the derivative of digamma of order ``n``, an integer from 0 on.

    It is ``(-1) ** (n + 1) n! zeta(n + 1, x)`` for n above 0: DLMF 5.15.1. NaN for other n.
    """
    odd = ~m.equal(m.floor(n * 0.5) * 2.0, n)
    size = m.exp(lgamma_positive(m, m.abs(n) + 1.0)) * zeta(m, n + 1.0, x)
    value = m.where(m.equal(n, 0.0), digamma(m, x), m.where(odd, size, -size))
    return m.where(m.equal(m.floor(n), n) & (n >= 0.0), value, math.nan)


def _euler_maclaurin(m: Arithmetic, s: Number, q: Number) -> Number:
    """Return zeta for ``q >= 0`` by the formula of Euler and Maclaurin (DLMF 25.11.5 and
    2.10.1)."""
    total = m.power(q, -s)
    for k in range(1, TERMS):
        total = total + m.power(q + float(k), -s)
    a = q + float(TERMS)
    term = m.power(a, -s)
    total = total + term * a / (s - 1.0) + 0.5 * term
    inverse = 1.0 / a
    term = term * s * inverse
    for k, bernoulli in enumerate(BERNOULLI, start=1):
        total = total + term * (bernoulli / math.factorial(2 * k))
        order = float(2 * k)
        term = term * ((s + (order - 1.0)) * inverse) * ((s + order) * inverse)
    return total


OPERATORS = (
    elementwise("Zeta", zeta, "Zeta function of Hurwitz", inputs=("s", "q"), primitive="zeta"),
    elementwise(
        "Polygamma",
        polygamma,
        "Derivative of digamma of order n",
        inputs=("n", "x"),
        primitive="polygamma",
    ),
)
