"""``smelt.Igamma`` and its relatives: the regularized incomplete gamma functions.

The lower function uses its series where x is small or below a. The upper one uses its continued
fraction elsewhere. Both use Temme's expansion where a is large and x near it.
"""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.special.digamma import digamma
from smelt.operators.special.error import erfc
from smelt.operators.special.fractions import gamma_fraction, gamma_series
from smelt.operators.special.gamma import deviance, stirling_rest
from smelt.operators.special.temme import expand


def density(m: Arithmetic, a: Number, x: Number) -> Number:
    """Return ``x ** a exp(-x) / gamma(a)`` for a, x > 0."""
    return m.exp(deviance(m, a, x) - stirling_rest(m, a)) * m.sqrt(a * (0.5 / math.pi))


def _is_inside_domain(m: Arithmetic, a: Number, x: Number) -> Number:
    """True where the functions need computing: finite and above 0."""
    return (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)


def _lower_and_upper(m: Arithmetic, a: Number, x: Number) -> tuple[Number, Number]:
    """Return both functions where ``_is_inside_domain``, each accurate where it is small.

    1. Where x is small (``by_series``), a series gives the lower function, and 1 less it the upper.
    2. Elsewhere a continued fraction gives the upper function, and 1 less it the lower.
    3. Where Temme's expansion is valid, near x = a, it gives both.
    """
    inside = _is_inside_domain(m, a, x)
    a, x = m.where(inside, a, 1.0), m.where(inside, x, 1.0)
    temme = expand(m, a, x)
    factor = density(m, a, x)
    is_used = inside & ~temme.valid & (factor > 0.0)
    by_series = (x < 1.0) | (x < a)
    lower = gamma_series(m, a, x, is_used & by_series)[0] * factor / a
    upper = gamma_fraction(m, a, x, is_used & ~by_series)[0] * factor
    lower, upper = m.where(by_series, lower, 1.0 - upper), m.where(by_series, 1.0 - lower, upper)
    correction = m.exp(temme.exponent) * temme.total / m.sqrt(a * (2.0 * math.pi))
    scaled = temme.eta * m.sqrt(a * 0.5)
    near_upper = 0.5 * erfc(m, scaled) + correction
    near_lower = 0.5 * erfc(m, -scaled) - correction
    use_temme = temme.valid
    return m.where(use_temme, near_lower, lower), m.where(use_temme, near_upper, upper)


def _on_edges_of_domain(m: Arithmetic, a: Number, x: Number) -> tuple[Number, Number]:
    """Return both functions on the edges of their domain, as in JAX; NaN beyond the edges.

    JAX leaves some limits NaN: both functions at infinite a from x = 1 on, the lower at a = 0 up to
    x = 1.
    """
    is_zero = (a > 0.0) & m.equal(x, 0.0) | m.equal(a, math.inf) & (x > 0.0) & (x < 1.0)
    is_one = (x > 0.0) & m.equal(a, 0.0) | m.equal(x, math.inf) & (a > 0.0)
    lower = m.where(is_zero, 0.0, m.where(is_one, 1.0, math.nan))
    return m.where(m.equal(a, 0.0) & (x < 1.0), math.nan, lower), 1.0 - lower


def igamma(m: Arithmetic, a: Number, x: Number) -> Number:
    """Return the regularized lower incomplete gamma function P(a, x): DLMF 8.2.4."""
    return m.where(
        _is_inside_domain(m, a, x), _lower_and_upper(m, a, x)[0], _on_edges_of_domain(m, a, x)[0]
    )


def igammac(m: Arithmetic, a: Number, x: Number) -> Number:
    """Return the regularized upper incomplete gamma function Q(a, x): DLMF 8.2.4."""
    return m.where(
        _is_inside_domain(m, a, x), _lower_and_upper(m, a, x)[1], _on_edges_of_domain(m, a, x)[1]
    )


def igamma_grad_a(m: Arithmetic, a: Number, x: Number) -> Number:
    """Return the derivative of the lower function by a."""
    inside = _is_inside_domain(m, a, x)
    safe_a, safe_x = m.where(inside, a, 1.0), m.where(inside, x, 1.0)
    factor = density(m, safe_a, safe_x)
    value = -_upper_slope(m, safe_a, safe_x, inside & (factor > 0.0)) * factor
    edge = m.where(m.equal(x, 0.0) & (a > 0.0), 0.0, math.nan)
    return m.where(inside, m.where(factor > 0.0, value, 0.0), edge)


def _upper_slope(m: Arithmetic, a: Number, x: Number, is_used: Number) -> Number:
    """Return the derivative of the upper function Q by a, over ``density(a, x)``.

    The density's logarithm has the derivative ``slope = log(x) - digamma(a)`` by a.

    1. The series: Q is 1 - density * total / a, so its derivative over the density is
       ``-(total * (slope - 1 / a) + growth) / a``; ``growth`` is the derivative of ``total``.
    2. The fraction: Q is density * total, so the quotient is ``total * slope + growth``.
    3. Near x = a: the derivative of Temme's expansion, term by term.
    """
    temme = expand(m, a, x)
    is_used = is_used & ~temme.valid
    by_series = (x < 1.0) | (x < a)
    slope = m.log(x) - digamma(m, a)
    total, growth = gamma_series(m, a, x, is_used & by_series, slope=True)
    series = -(total * (slope - 1.0 / a) + growth) / a
    total, growth = gamma_fraction(m, a, x, is_used & ~by_series, slope=True)
    fraction = total * slope + growth
    bracket = temme.ratio - 0.5 * temme.eta
    bracket = bracket + temme.total * (temme.log_ratio - 0.5 / a) + temme.slope
    near = bracket * m.exp(stirling_rest(m, a)) / a
    return m.where(temme.valid, near, m.where(by_series, series, fraction))


NAMES = ("a", "x")
OPERATORS = (
    elementwise(
        "Igamma", igamma, "Lower regularized incomplete gamma function", NAMES, primitive="igamma"
    ),
    elementwise(
        "Igammac",
        igammac,
        "Upper regularized incomplete gamma function",
        NAMES,
        primitive="igammac",
    ),
    elementwise(
        "IgammaGradA", igamma_grad_a, "Derivative of Igamma by a", NAMES, primitive="igamma_grad_a"
    ),
)
