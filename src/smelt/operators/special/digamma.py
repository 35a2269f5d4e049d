"""``smelt.Digamma``: the derivative of the logarithm of the gamma function.

NaN at the poles 0, -1, -2, ...
"""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number, elementwise
from smelt.operators.numeric import polynomial

ROOT, ROOT_REST = 1.4616321449683622, 9.549995429965697e-17
"""The positive root, in two parts."""

AROUND_ROOT = (
    0.9676722454476212, -0.4427631689835921, 0.258499760955651, -0.16394270544240652,
    0.10782405069126237, -0.07219956125645471, 0.04880428816414311, -0.03316112647484736,
    0.022597648232218104, -0.01542476590494896, 0.010538791616612175, -0.007204534386356869,
    0.004926781395729853, -0.003369801655439328, 0.002305126326734928, -0.0015769367714301972,
    0.0010788252019162967, -0.0007380709389960052, 0.000504953265834602, -0.0003454680251063077,
    0.00023635601564027053, -0.00016170622091974803, 0.0001106337276874741,
)  # fmt: skip
"""Taylor's coefficients at the root, from the first power on."""

ASYMPTOTIC = (
    0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667,
    0.007575757575757576, -0.021092796092796094, 0.08333333333333333, -0.4432598039215686,
    3.0539543302701198, -26.456212121212122, 281.46014492753625,
)  # fmt: skip
"""``B(2k) / (2k)`` for k = 1, 2, ...: DLMF 5.11.2."""

LARGE = 10.0
"""Below this, the recurrence moves a number up before the asymptotic series is used."""


def digamma(m: Arithmetic, x: Number) -> Number:
    """Return digamma of x of any sign; NaN at the poles.

    An x up to 0 is reflected (DLMF 5.5.4): ``digamma(x) = digamma(1 - x) - pi / tan(pi x)``.
    """
    negative = x <= 0.0
    positive = _positive(m, m.where(negative, 1.0 - x, x))
    # The nearest integer, so that a tiny x keeps its digits.
    angle = (x - m.floor(x + 0.5)) * math.pi
    pole = m.equal(m.floor(x), x)
    reflected = positive - m.cos(angle) * math.pi / m.sin(angle)
    return m.where(negative, m.where(pole, math.nan, reflected), positive)


def _positive(m: Arithmetic, x: Number) -> Number:
    """Return digamma for x > 0.

    Near its root by Taylor's series in ``z``, the distance to the root; elsewhere by the asymptotic
    series at ``shifted``, less the terms of ``digamma(x) = digamma(x + 1) - 1 / x`` for each shift.
    """
    shifted, shift_terms = x, x * 0.0
    for _ in range(10):
        is_low = shifted < LARGE
        shift_terms = m.where(is_low, shift_terms + 1.0 / shifted, shift_terms)
        shifted = m.where(is_low, shifted + 1.0, shifted)
    inverse = 1.0 / shifted
    square = inverse * inverse
    series = square * polynomial(ASYMPTOTIC[::-1], square)
    by_expansion = m.log(shifted) - 0.5 * inverse - series - m.where(x < LARGE, shift_terms, 0.0)
    distance = (x - ROOT) - ROOT_REST
    is_near_root = m.abs(distance) < 0.3
    z = m.where(is_near_root, distance, 0.0)
    return m.where(is_near_root, z * polynomial(AROUND_ROOT[::-1], z), by_expansion)


OPERATOR = elementwise(
    "Digamma", digamma, "Derivative of the logarithm of the gamma function", primitive="digamma"
)
