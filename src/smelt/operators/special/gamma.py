"""``smelt.Lgamma``: the logarithm of the absolute value of the gamma function.

Infinite at the poles 0, -1, -2, ... Accurate to a few ulp of the result, except near the roots
below 0, where it is accurate to a few ulp of the larger of the terms that cancel there.
"""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.numeric import log1p_less_x, polynomial

LESS_GAMMA = 0.42278433509846713
"""1 minus Euler's constant."""

HALF_LOG_2PI = 0.91893853320467274

SERIES = (
    0.3224670334241132, 0.0673523010531981, 0.020580808427784546, 0.007385551028673986,
    0.0028905103307415234, 0.001192753911703261, 0.0005096695247430425, 0.00022315475845357939,
    9.945751278180853e-05, 4.492623673813314e-05, 2.050721277567069e-05, 9.439488275268397e-06,
    4.374866789907488e-06, 2.039215753801366e-06, 9.55141213040742e-07, 4.492469198764566e-07,
    2.1207184805554665e-07, 1.0043224823968099e-07, 4.7698101693639804e-08,
    2.2711094608943164e-08, 1.0838659214896955e-08, 5.183475041970047e-09, 2.4836745438024785e-09,
    1.1921401405860912e-09, 5.731367241678862e-10, 2.7595228851242334e-10, 1.330476437424449e-10,
    6.4229645638381e-11,
)  # fmt: skip
"""``(zeta(k) - 1) / k`` for k = 2, 3, ...: DLMF 5.7.3."""

STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,
    0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,
    0.17964437236883057, -1.3924322169059011,
)  # fmt: skip
"""``B(2k) / (2k (2k - 1))`` for k = 1, 2, ...: DLMF 5.11.1."""

LARGE = 10.0
"""From here on Stirling's series is exact in double precision."""


def lgamma(m: Arithmetic, x: Number) -> Number:
    """Return lgamma of x of any sign.

    A negative x is reflected (DLMF 5.5.3): ``gamma(x) gamma(-x) = -pi / (x sin(pi x))``.
    """
    size = m.abs(x)
    positive = lgamma_positive(m, size)
    reflected = math.log(math.pi) - m.log(size) - m.log(sin_pi(m, size)) - positive
    value = m.where(x < 0.0, reflected, positive)
    return m.where(m.equal(size, math.inf), math.inf, value)


def lgamma_positive(m: Arithmetic, x: Number) -> Number:
    """Return lgamma for ``x >= 0``: below ``LARGE`` by a series around 2, else by Stirling's.

    The recurrence ``gamma(x + 1) = x gamma(x)`` moves x to within 1/2 of 2: up by 2 below 1/2, up
    by 1 below 3/2, else down by 1 as often as needed. The logarithm of the factors is then added.
    """
    shifted, product = x, x * 0.0 + 1.0
    for _ in range(8):
        down = shifted >= 2.5
        shifted = m.where(down, shifted - 1.0, shifted)
        product = m.where(down, product * shifted, product)
    near_zero, near_one = x < 0.5, x < 1.5
    z = m.where(near_zero, x, m.where(near_one, x - 1.0, shifted - 2.0))
    # gamma(x) is gamma(x + 1) / x; a shift downward multiplies.
    factor = m.log(m.where(near_zero, x * (x + 1.0), m.where(near_one, x, product)))
    by_series = _around_two(m.where(x < LARGE, z, 0.0)) + m.where(near_one, -factor, factor)
    by_stirling = (x - 0.5) * (m.log(x) - 1.0) + (HALF_LOG_2PI - 0.5) + _stirling(x)
    return m.where(x < LARGE, by_series, by_stirling)


def stirling_rest(m: Arithmetic, x: Number) -> Number:
    """Return ``lgamma(x)`` minus Stirling's formula ``(x - 1/2) log(x) - x + log(2 pi) / 2``, x >
    0."""
    small = lgamma_positive(m, x) - ((x - 0.5) * m.log(x) - x + HALF_LOG_2PI)
    return m.where(x < LARGE, small, _stirling(x))


def deviance(m: Arithmetic, a: Number, x: Number) -> Number:
    """Return ``a log(x / a) - (x - a)``, never positive, accurate where x is near a.

    C. Loader, "Fast and accurate computation of binomial probabilities" (2000), splits the powers
    of large numbers like this.
    """
    u = (x - a) / a
    close = (u > -0.5) & (u < 1.0)
    by_series = a * log1p_less_x(m, m.where(close, u, 0.0))
    return m.where(close, by_series, a * (m.log(x) - m.log(a)) - (x - a))


def sin_pi(m: Arithmetic, x: Number) -> Number:
    """Return ``|sin(pi x)|`` for x >= 0, exactly 0 at integers."""
    fraction = x - m.floor(x)
    return m.sin(m.where(fraction > 0.5, 1.0 - fraction, fraction) * math.pi)


def _around_two(z: Number) -> Number:
    """Return ``lgamma(2 + z)`` for ``|z| <= 1/2``."""
    return z * (LESS_GAMMA + z * polynomial(SERIES[::-1], -z))


def _stirling(x: Number) -> Number:
    """Return the sum of Stirling's series: ``1 / (12 x) - 1 / (360 x^3) + ...``."""
    inverse = 1.0 / x
    return inverse * polynomial(STIRLING[::-1], inverse * inverse)


OPERATOR = elementwise(
    "Lgamma",
    lgamma,
    "Logarithm of the absolute value of the gamma function",
    floats="lgamma@f({0})",
    primitive="lgamma",
)
