"""``smelt.Erf``, ``smelt.Erfc`` and ``smelt.ErfInv``: the error function and its relatives.

The tail is a Chebyshev expansion over the whole positive axis: J. Schonfelder, "Chebyshev
expansions for the error and related functions" (1978). The inverse takes the variable of
M. Giles, "Approximating the erfinv function" (2010).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from numpy.polynomial.chebyshev import cheb2poly

from smelt.operators.elementwise import functions
from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.numeric import SINGLE_TOLERANCE, chebyshev, polynomial

SERIES = tuple(
    2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(22)
)
"""Coefficients of ``erf(x) / x`` in x * x: DLMF 7.6.1."""

MIDPOINT = 3.75
"""The x that the variable of ``TAIL`` maps to 0; it maps 0 to -1, and infinity to 1."""

TAIL = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11,
    2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15,
    7.418235256624044e-17, 5.068148904796111e-17, -2.2370566594359995e-18, -2.187342944303018e-18,
)  # fmt: skip
"""``exp(x * x) erfc(x) (1 + 2 x)`` in ``(x - MIDPOINT) / (x + MIDPOINT)``."""

CENTRAL = (
    1.6304220989459326, 0.7315674456742257, -0.021235032142504585, -0.0065808875424494635,
    0.0019488711426908524, -0.00014158343386374536, -4.9292864636180004e-05,
    1.4752887929042498e-05, -6.111918603258194e-07, -5.106997335480761e-07, 1.159027723297735e-07,
    1.4907998843194937e-09, -5.244776785530681e-09, 8.51790549109762e-10, 7.917020592973908e-11,
    -5.0994281737154326e-11, 5.436227530231317e-12, 1.292282189751795e-12, -4.656064719044143e-13,
    2.4256976317675218e-14, 1.6403697972051414e-14, -3.94956069090147e-15,
    -3.9036001761416307e-17, 1.83129083527959e-16, -3.03580260263594e-17, -2.8782301773959922e-18,
    1.8669320251663633e-18,
)  # fmt: skip
"""``erf_inv(x) / x`` for ``w = -log(1 - x * x)`` from 0 to 6.25."""

MIDDLE = (
    3.085744844023102, 0.7524837268921277, 0.0019842584172056767, -0.000534561900101604,
    0.0001302806745904227, -2.943377534710642e-05, 5.231051543788091e-06, -5.385189635316591e-07,
    -2.922686732135409e-08, 2.3903569231251557e-08, -4.411209869554094e-09,
    2.2053622855049448e-10, 8.095391923249493e-11, -2.1642011149793333e-11,
    1.9364299208504444e-12, 1.9183918173325102e-13, -8.245551635697369e-14,
    1.0402388222104601e-14, 2.9484539267546553e-17, -2.4669496593190295e-16,
    4.5962728850225956e-17, -3.0942577381166363e-18,
)  # fmt: skip
"""The same for ``sqrt(w)`` from 2.5 to 4."""

FAR = (
    4.976098221510014, 1.13632640639631, -7.894657288651023e-05, -7.40393876674932e-05,
    1.4487997116092317e-05, -2.0897638359601916e-06, 2.708361680705596e-07,
    -3.4653657974355744e-08, 4.986112173302154e-09, -9.387771499414535e-10, 2.281197598612107e-10,
    -6.021669188625185e-11, 1.5059720227547468e-11, -3.31714818939e-12, 6.053913177507794e-13,
    -8.10009365553492e-14, 4.0556194175929325e-15, 1.6557915132295137e-15, -6.461302524268682e-16,
    1.3347514307226607e-16, -1.6796033084251808e-17,
)  # fmt: skip
"""The same for ``sqrt(w)`` from 4 to 6.25, beyond the last number below 1."""


def erf(m: Arithmetic, x: Number) -> Number:
    """Return the error function: a series below 1, beyond that 1 minus the tail."""
    tail = 1.0 - _tail(m, m.abs(x))
    return m.where(m.abs(x) < 1.0, _erf_near_zero(m, x), m.where(x < 0.0, -tail, tail))


def erfc(m: Arithmetic, x: Number) -> Number:
    """Return the complementary error function, accurate to a few ulp even where it is tiny."""
    tail = _tail(m, m.abs(x))
    outer = m.where(x < 0.0, 2.0 - tail, tail)
    return m.where(m.abs(x) < 0.5, 1.0 - _erf_near_zero(m, x), outer)


def erf_inv(m: Arithmetic, x: Number) -> Number:
    """Return the inverse of erf; infinity at 1 and -1, NaN beyond.

    It is x times a Chebyshev series in ``w = -log(1 - x^2)`` or its root; each of three ranges is
    mapped to [-1, 1]. In single precision no number below 1 has a root of 4 or more, so ``FAR`` is
    not needed.
    """
    w = -m.log((1.0 - x) * (x + 1.0))
    root = m.sqrt(m.maximum(w, 0.0))
    central = _series(m, CENTRAL, m.minimum(w, 6.25) * (2.0 / 6.25) - 1.0)
    factor = m.where(w < 6.25, central, _series(m, MIDDLE, (root - 3.25) / 0.75))
    if m.tolerance < SINGLE_TOLERANCE:
        outer_factor = _series(m, FAR, (m.minimum(root, 6.25) - 5.125) / 1.125)
        factor = m.where(root < 4.0, factor, outer_factor)
    return x * m.where(m.equal(m.abs(x), 1.0), math.inf, factor)


def _series(m: Arithmetic, coefficients: Sequence[float], x: Number) -> Number:
    """Return ``sum(coefficients[k] T_k(x))``.

    In single precision few terms are needed: they are summed as powers of x, with two operators per
    term. More terms would lose digits that way.
    """
    terms = m.terms(coefficients)
    if m.tolerance < SINGLE_TOLERANCE:
        return chebyshev(terms, x)
    return polynomial([float(c) for c in cheb2poly(terms)[::-1]], x)


def _erf_near_zero(m: Arithmetic, x: Number) -> Number:
    """Return ``erf(x)`` for ``abs(x) < 1`` by its odd Taylor series, 0 elsewhere."""
    inside = m.where(m.abs(x) < 1.0, x, 0.0)
    return inside * polynomial(SERIES[::-1], inside * inside)


def _tail(m: Arithmetic, x: Number) -> Number:
    """Return ``erfc(x)`` for x >= 0.

    The square in the exponent is computed in two parts, because exp magnifies its rounding error:
    ``x^2 = rounded^2 + (x - rounded) (x + rounded)``, and the first is exact.
    """
    bounded = m.minimum(x, 30.0)
    rounded = m.floor(bounded * 1024.0) * (1 / 1024)
    decay = m.exp(-rounded * rounded) * m.exp((rounded - bounded) * (rounded + bounded))
    expansion = chebyshev(TAIL, (bounded - MIDPOINT) / (bounded + MIDPOINT))
    return decay * expansion / (bounded * 2.0 + 1.0)


OPERATORS = (
    elementwise(
        "Erf",
        erf,
        "Error function of floats and doubles",
        array=functions.erf,
        floats="erf@f({0})",
    ),
    elementwise(
        "Erfc",
        erfc,
        "Complementary error function",
        array=functions.erfc,
        floats="erfc@f({0})",
        primitive="erfc",
    ),
    elementwise("ErfInv", erf_inv, "Inverse of the error function", primitive="erf_inv"),
)
