"""``smelt.Betainc``: the regularized incomplete beta function, by its continued fraction.

The fraction is evaluated by W. Lentz' method as I. Thompson and A. Barnett modified it (1986).
"""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.special.gamma import deviance, stirling_rest

LIMIT = 10000.0
"""Steps after which an element that has not converged is NaN: a or b beyond some ten million."""

TOLERANCE = 2.0**-51
SMALL = 2.0**-1000
"""The change that ends the fraction, and the number that replaces ratios near 0 (divisors)."""


def betainc(m: Arithmetic, a: Number, b: Number, x: Number) -> Number:
    """Return the regularized incomplete beta function I(a, b, x): DLMF 8.17.2.

    NaN outside of a, b >= 0 and 0 <= x <= 1, and where two limits contradict each other.
    """
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    mass_at_0 = m.equal(a, 0.0) | m.equal(b, math.inf)  # all weight at 0
    mass_at_1 = m.equal(b, 0.0) | m.equal(a, math.inf)  # all weight at 1
    allowed = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0) & ~(mass_at_0 & mass_at_1)
    is_one = mass_at_0 & (x > 0.0) | m.equal(x, 1.0)
    edge = m.where(allowed, m.where(is_one, 1.0, 0.0), math.nan)
    a, b, x = (m.where(inside, number, 0.5) for number in (a, b, x))
    return m.where(inside, _by_fraction(m, a, b, x, inside), edge)


def _by_fraction(m: Arithmetic, a: Number, b: Number, x: Number, is_used: Number) -> Number:
    """Return the function on the side of the mean where the fraction converges fast (DLMF 8.17.4).

    Beyond the mean, ``I(a, b, x) = 1 - I(b, a, 1 - x)`` swaps the arguments.
    """
    direct = x < (a + 1.0) / (a + b + 2.0)
    complement = 1.0 - x
    first, second = m.where(direct, a, b), m.where(direct, b, a)
    place, one_less_place = m.where(direct, x, complement), m.where(direct, complement, x)
    factor = _density(m, first, second, place, one_less_place)
    value = factor * _fraction(m, first, second, place, is_used & (factor > 0.0)) / first
    return m.where(direct, value, 1.0 - value)


def _density(m: Arithmetic, a: Number, b: Number, x: Number, complement: Number) -> Number:
    """Return ``x ** a (1 - x) ** b / B(a, b)``, with the large powers split (Loader 2000)."""
    total = a + b
    exponent = deviance(m, a, total * x) + deviance(m, b, total * complement)
    exponent = exponent + stirling_rest(m, total) - stirling_rest(m, a) - stirling_rest(m, b)
    return m.exp(exponent) * m.sqrt(a / total * b * (0.5 / math.pi))


def _fraction(m: Arithmetic, a: Number, b: Number, x: Number, is_used: Number) -> Number:
    """Return the reciprocal of the continued fraction DLMF 8.17.22, two of its terms per step.

    ``1 + t1 / (1 + t2 / (1 + ...))`` is the product of the ratios ``c d``, after W. Lentz; a step
    multiplies ``value`` by the ratios of the terms 2 k and 2 k + 1.
    """
    one = x * 0.0 + 1.0

    def advance(term: Number, c: Number, d: Number) -> tuple[Number, Number]:
        """Return the next ratios of numerators ``c`` and of denominators ``d``, kept away from
        0."""
        c, d = 1.0 + term / c, 1.0 + term * d
        c = m.where(m.abs(c) < SMALL, SMALL, c)
        return c, 1.0 / m.where(m.abs(d) < SMALL, SMALL, d)

    def step(active: Number, *state: Number) -> tuple[Number, ...]:
        """Advance the fraction by two terms where ``active`` is true."""
        k, c, d, value = state
        next_k = k + 1.0
        twice = a + 2.0 * next_k
        even_term = next_k * (b - next_k) * x / ((twice - 1.0) * twice)
        odd_term = -(a + next_k) * (a + b + next_k) * x / (twice * (twice + 1.0))
        odd_c, odd_d = advance(even_term, c, d)
        next_c, next_d = advance(odd_term, odd_c, odd_d)
        change = next_c * next_d
        next_state = (next_k, next_c, next_d, value * (odd_c * odd_d) * change)
        going = m.abs(change - 1.0) > TOLERANCE
        updated = (
            m.where(active, after, before) for after, before in zip(next_state, state, strict=True)
        )
        return (active & going & (next_k < LIMIT), *updated)

    first_term = -(a + b) * x / (a + 1.0)
    d = advance(first_term, one, one)[1]
    start = (is_used, one * 0.0, one, d, d)
    _, k, _, _, value = m.loop(lambda active, *_: active, step, start)
    return m.where(k >= LIMIT, math.nan, value)


OPERATOR = elementwise(
    "Betainc",
    betainc,
    "Regularized incomplete beta function",
    inputs=("a", "b", "x"),
    primitive="regularized_incomplete_beta",
)
