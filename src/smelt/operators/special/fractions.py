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
"""The most terms, the least relative change that needs a further term, and the largest numerator
of a fraction.
"""


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
        count, term, total, term_slope, total_slope = state
        count = count + 1.0
        divisor = a + count
        if slope:
            term_slope = (term_slope - term / divisor) * (x / divisor)
            total_slope = total_slope + term_slope
        term = term * (x / divisor)
        total = total + term
        going = term > EPS * total
        if slope:
            going = going | (m.abs(term_slope) > EPS * m.abs(total_slope))
        next_state = (count, term, total, term_slope, total_slope)
        updated = (
            m.where(active, after, before) for after, before in zip(next_state, state, strict=True)
        )
        return (active & going & (count < LIMIT), *updated)

    start = (is_used, zero, one, one, zero, zero)
    _, count, _, total, _, slope_of_total = m.loop(lambda active, *_: active, step, start)
    failed = count >= LIMIT
    return m.where(failed, math.nan, total), m.where(failed, math.nan, slope_of_total)


def gamma_fraction(
    m: Arithmetic, a: Number, x: Number, is_used: Number, *, slope: bool = False
) -> tuple[Number, Number]:
    """Return the upper function over ``density(a, x)``, and its derivative by a: DLMF 8.9.2.

    Numerators and denominators follow recurrences and are scaled down as they grow, as in Cephes:
    ``num = num1 * z - num2 * w``, and the same for ``den``. 1 is the last term, 2 the one before.
    The slopes are the derivatives of the same recurrences by a. The loop ends where the quotient
    ``num / den``, and with ``slope`` its derivative, changes by rounding errors only.
    """
    zero = x * 0.0
    one = zero + 1.0

    def step(active: Number, *state: Number) -> tuple[Number, ...]:
        """Advance the fraction by one term where ``active`` is true."""
        (
            count,
            value,
            num1,
            den1,
            num2,
            den2,
            value_slope,
            num1_slope,
            den1_slope,
            num2_slope,
            den2_slope,
        ) = state
        count = count + 1.0
        # Term n of the fraction has the partial denominator x + 2 n + 2 - a and the partial
        # numerator -n (n + 1 - a); n is ``count``.
        y = (count + 1.0) - a
        z = x + y + (count + 1.0)
        w = y * count
        num, den = num1 * z - num2 * w, den1 * z - den2 * w
        usable = ~m.equal(den, 0.0)
        divisor = m.where(usable, den, 1.0)
        ratio = m.where(usable, num / divisor, value)
        going = ~usable | (m.abs(value - ratio) > EPS * m.abs(ratio))
        shrink = m.where(m.abs(num) > BIG, 1.0 / BIG, 1.0)
        next_state = [count, ratio, num * shrink, den * shrink, num1 * shrink, den1 * shrink]
        if slope:
            num_slope = num1_slope * z - num1 - num2_slope * w + num2 * count
            den_slope = den1_slope * z - den1 - den2_slope * w + den2 * count
            ratio_slope = m.where(usable, (num_slope - ratio * den_slope) / divisor, value_slope)
            noise = EPS * m.maximum(m.abs(ratio_slope), m.abs(num_slope / divisor))
            going = going | (m.abs(ratio_slope - value_slope) > noise)
            next_state += [
                ratio_slope,
                num_slope * shrink,
                den_slope * shrink,
                num1_slope * shrink,
                den1_slope * shrink,
            ]
        else:
            next_state += [value_slope, num1_slope, den1_slope, num2_slope, den2_slope]
        updated = (
            m.where(active, after, before) for after, before in zip(next_state, state, strict=True)
        )
        return (active & going & (count < LIMIT), *updated)

    z = x + 2.0 - a
    num1, den1 = x + 1.0, z * x
    # The derivatives of num1 and den1 by a are 0 and -x.
    start = (
        is_used,
        zero,
        num1 / den1,
        num1,
        den1,
        one,
        x,
        num1 * x / (den1 * den1),
        zero,
        -x,
        zero,
        zero,
    )
    _, count, value, _, _, _, _, value_slope, *_ = m.loop(lambda active, *_: active, step, start)
    failed = count >= LIMIT
    return m.where(failed, math.nan, value), m.where(failed, math.nan, value_slope)
