"""Series and continued fractions of the incomplete gamma functions, with their derivatives by a.

The iteration of each element stops separately, so its result does not depend on its neighbors. An
element that has not converged after ``LIMIT`` steps is NaN.
"""

from __future__ import annotations

import math

from smelt.operators.formula import Arithmetic, Number

LIMIT = 10000.0
EPS = 2.0**-52
BIG = 2.0**100


def gamma_series(
    m: Arithmetic, a: Number, x: Number, is_used: Number, *, slope: bool = False
) -> tuple[Number, Number]:
    """Return ``sum(x ** n / ((a + 1) ... (a + n)))`` and its derivative by a: DLMF 8.7.1.

    The derivative is 0 unless ``slope`` is true; both are 0 where they are not ``is_used``.
    """
    zero = x * 0.0
    one = zero + 1.0

    def step(active: Number, *state: Number) -> tuple[Number, ...]:
        """Add one term of the series where ``active`` is true."""
        count, term, total, grown, growth = state
        count = count + 1.0
        over = a + count
        if slope:
            grown = (grown - term / over) * (x / over)
            growth = growth + grown
        term = term * (x / over)
        total = total + term
        going = term > EPS * total
        if slope:
            going = going | (m.abs(grown) > EPS * m.abs(growth))
        new = (count, term, total, grown, growth)
        updated = (m.where(active, after, before) for after, before in zip(new, state, strict=True))
        return (active & going & (count < LIMIT), *updated)

    start = (is_used, zero, one, one, zero, zero)
    _, count, _, total, _, growth = m.loop(lambda active, *_: active, step, start)
    failed = count >= LIMIT
    return m.where(failed, math.nan, total), m.where(failed, math.nan, growth)


def gamma_fraction(
    m: Arithmetic, a: Number, x: Number, is_used: Number, *, slope: bool = False
) -> tuple[Number, Number]:
    """Return the upper function over ``density(a, x)``, and its derivative by a: DLMF 8.9.2.

    Numerators and denominators follow recurrences and are scaled down as they grow, as in Cephes.
    """
    zero = x * 0.0
    one = zero + 1.0

    def step(active: Number, *state: Number) -> tuple[Number, ...]:
        """Advance the fraction by one term where ``active`` is true."""
        count, value, p1, q1, p2, q2, dvalue, dp1, dq1, dp2, dq2 = state
        count = count + 1.0
        y = (count + 1.0) - a
        z = x + y + (count + 1.0)
        w = y * count
        p, q = p1 * z - p2 * w, q1 * z - q2 * w
        usable = ~m.equal(q, 0.0)
        divisor = m.where(usable, q, 1.0)
        ratio = m.where(usable, p / divisor, value)
        going = ~usable | (m.abs(value - ratio) > EPS * m.abs(ratio))
        down = m.where(m.abs(p) > BIG, 1.0 / BIG, 1.0)
        new = [count, ratio, p * down, q * down, p1 * down, q1 * down]
        if slope:
            dp = dp1 * z - p1 - dp2 * w + p2 * count
            dq = dq1 * z - q1 - dq2 * w + q2 * count
            dratio = m.where(usable, (dp - ratio * dq) / divisor, dvalue)
            noise = EPS * m.maximum(m.abs(dratio), m.abs(dp / divisor))
            going = going | (m.abs(dratio - dvalue) > noise)
            new += [dratio, dp * down, dq * down, dp1 * down, dq1 * down]
        else:
            new += [dvalue, dp1, dq1, dp2, dq2]
        updated = (m.where(active, after, before) for after, before in zip(new, state, strict=True))
        return (active & going & (count < LIMIT), *updated)

    z = x + 2.0 - a
    p1, q1 = x + 1.0, z * x
    # The derivatives of p1 and q1 by a are 0 and -x.
    start = (is_used, zero, p1 / q1, p1, q1, one, x, p1 * x / (q1 * q1), zero, -x, zero, zero)
    _, count, value, _, _, _, _, dvalue, *_ = m.loop(lambda active, *_: active, step, start)
    failed = count >= LIMIT
    return m.where(failed, math.nan, value), m.where(failed, math.nan, dvalue)
