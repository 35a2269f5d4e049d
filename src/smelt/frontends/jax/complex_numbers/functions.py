"""Elementary functions of complex numbers.

Where terms could cancel, after W. Kahan, "Branch Cuts for Complex Elementary Functions", 1987.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.complex_numbers.parts import Array, Parts, real


def magnitude(z: Parts) -> Array:
    """Return ``|z|`` without overflow; infinite if either part is infinite."""
    a, b = jnp.abs(z.re), jnp.abs(z.im)
    high, low = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = low / jnp.where(high == 0, 1, high)
    infinite = jnp.isinf(a) | jnp.isinf(b)
    return jnp.where(infinite, jnp.inf, high * jnp.sqrt(1 + ratio * ratio))


def divide(a: Parts, b: Parts) -> Parts:
    """Return ``a / b``; ``b`` is first divided by its larger part, against overflow.

    Division by 0 divides each part of ``a`` by 0; an infinite ``b`` gives 0.
    """
    largest = jnp.maximum(jnp.abs(b.re), jnp.abs(b.im))
    infinite, zero = jnp.isinf(largest), largest == 0
    scale = jnp.where(infinite | zero, 1, largest)
    c, d = (jnp.where(infinite, _limit(part), part / scale) for part in (b.re, b.im))
    square = c * c + d * d
    reciprocal = jnp.where(infinite, 0, 1 / jnp.where(zero, 1, square))
    quotient = Parts(a.re * c + a.im * d, a.im * c - a.re * d)
    return Parts(
        jnp.where(zero, a.re / b.re, quotient.re * reciprocal / scale),
        jnp.where(zero, a.im / b.re, quotient.im * reciprocal / scale),
    )


def _limit(part: Array) -> Array:
    """Return 1 for an infinity and 0 for a finite number, each with the sign of ``part``."""
    return jnp.copysign(jnp.where(jnp.isinf(part), 1, 0).astype(part.dtype), part)


def log(z: Parts) -> Parts:
    """Return ``log(z)``: the log of the magnitude as real part, the angle as imaginary part.

    Let ``high`` and ``low`` be the larger and the smaller magnitude of the parts. If ``high`` is
    near 1, the log of the magnitude is ``log1p((high - 1) (high + 1) + low^2) / 2``. Elsewhere it
    is ``log(high) + log1p((low / high)^2) / 2``.
    """
    size_re, size_im = jnp.abs(z.re), jnp.abs(z.im)
    high, low = jnp.maximum(size_re, size_im), jnp.minimum(size_re, size_im)
    is_near_one = (high > 0.5) & (high < 2)
    high_near_one = jnp.where(is_near_one, high, 1)
    by_log1p = 0.5 * jnp.log1p(
        (high_near_one - 1) * (high_near_one + 1) + jnp.where(is_near_one, low, 0) ** 2
    )
    ratio = low / jnp.where((high == 0) | jnp.isinf(high), 1, high)
    ratio = jnp.where(jnp.isinf(high), 0, ratio)
    return Parts(
        jnp.where(is_near_one, by_log1p, jnp.log(high) + 0.5 * jnp.log1p(ratio * ratio)),
        jnp.arctan2(z.im, z.re),
    )


def log1p(z: Parts) -> Parts:
    """Return ``log(1 + z)``, accurate for small ``z``."""
    small = (jnp.abs(z.re) < 0.5) & (jnp.abs(z.im) < 0.5)
    x, y = jnp.where(small, z.re, 0), jnp.where(small, z.im, 0)
    direct = log(Parts(1 + z.re, z.im))
    return Parts(jnp.where(small, 0.5 * jnp.log1p(x * (2 + x) + y * y), direct.re), direct.im)


def exp(z: Parts) -> Parts:
    """Return ``exp(z)``; a real ``z`` gives a real result even where it overflows."""
    magnitude = jnp.exp(z.re)
    return Parts(
        jnp.where(z.im == 0, magnitude, magnitude * jnp.cos(z.im)),
        jnp.where(z.im == 0, z.im, magnitude * jnp.sin(z.im)),
    )


def expm1(z: Parts) -> Parts:
    """Return ``exp(z) - 1``, accurate for small ``z``."""
    half = jnp.sin(z.im / 2)
    return Parts(jnp.expm1(z.re) * jnp.cos(z.im) - 2 * half * half, exp(z).im)


def sqrt(z: Parts) -> Parts:
    """Return the square root whose real part is not negative.

    The larger part of the root is ``sqrt((|z.re| + |z|) / 2)``, the other ``|z.im| / larger / 2``.
    """
    larger = jnp.sqrt(jnp.abs(z.re) / 2 + magnitude(z) / 2)
    smaller = jnp.abs(z.im) / jnp.where(larger == 0, 1, larger) / 2
    in_right_half = z.re >= 0
    upward = jnp.where(in_right_half, smaller, larger)
    return Parts(jnp.where(in_right_half, larger, smaller), jnp.where(z.im < 0, -upward, upward))


def rsqrt(z: Parts) -> Parts:
    """Return ``1 / sqrt(z)``."""
    return divide(real(jnp.ones_like(z.re)), sqrt(z))


def sin(z: Parts) -> Parts:
    """Return the sine."""
    return Parts(jnp.sin(z.re) * jnp.cosh(z.im), jnp.cos(z.re) * jnp.sinh(z.im))


def cos(z: Parts) -> Parts:
    """Return the cosine."""
    return Parts(jnp.cos(z.re) * jnp.cosh(z.im), -jnp.sin(z.re) * jnp.sinh(z.im))


def sinh(z: Parts) -> Parts:
    """Return the hyperbolic sine, ``-i sin(i z)``."""
    return sin(z.times_i()).times_minus_i()


def cosh(z: Parts) -> Parts:
    """Return the hyperbolic cosine."""
    return cos(z.times_i())


def tanh(z: Parts) -> Parts:
    """Return the hyperbolic tangent, from tanh and tan of the parts, so that nothing overflows.

    With t = tanh(re) and u = tan(im), it is ``(t + iu) / (1 + itu)``.
    """
    tanh_re, tan_im = jnp.tanh(z.re), jnp.tan(z.im)
    slope = 1 / jnp.cosh(jnp.clip(z.re, -80, 80)) ** 2  # 1 - t*t, without the cancellation
    denominator = 1 + tanh_re * tanh_re * tan_im * tan_im
    return Parts(tanh_re * (1 + tan_im * tan_im) / denominator, tan_im * slope / denominator)


def tan(z: Parts) -> Parts:
    """Return the tangent."""
    return tanh(z.times_i()).times_minus_i()


def asin(z: Parts) -> Parts:
    """Return the arc sine, from the square roots of ``1 - z`` and ``1 + z`` (Kahan)."""
    minus, plus = sqrt(Parts(1 - z.re, -z.im)), sqrt(Parts(1 + z.re, z.im))
    return Parts(jnp.arctan2(z.re, (minus * plus).re), jnp.arcsinh((minus.conjugate() * plus).im))


def acos(z: Parts) -> Parts:
    """Return the arc cosine, from the square roots of ``1 - z`` and ``1 + z`` (Kahan)."""
    minus, plus = sqrt(Parts(1 - z.re, -z.im)), sqrt(Parts(1 + z.re, z.im))
    return Parts(2 * jnp.arctan2(minus.re, plus.re), jnp.arcsinh((plus.conjugate() * minus).im))


def asinh(z: Parts) -> Parts:
    """Return the hyperbolic arc sine."""
    return asin(z.times_i()).times_minus_i()


def acosh(z: Parts) -> Parts:
    """Return the hyperbolic arc cosine, from square roots of ``z - 1`` and ``z + 1`` (Kahan)."""
    minus, plus = sqrt(Parts(z.re - 1, z.im)), sqrt(Parts(z.re + 1, z.im))
    return Parts(jnp.arcsinh((minus.conjugate() * plus).re), 2 * jnp.arctan2(minus.im, plus.re))


def atanh(z: Parts) -> Parts:
    """Return the hyperbolic arc tangent, ``log((1 + z) / (1 - z)) / 2``.

    With z = x + iy, the squared magnitude of the quotient is ``1 + 4x / ((1 - x)^2 + y^2)``.
    """
    x, y = z.re, z.im
    return Parts(
        0.25 * jnp.log1p(4 * x / ((1 - x) ** 2 + y * y)),
        0.5 * jnp.arctan2(2 * y, (1 - x) * (1 + x) - y * y),
    )


def atan(z: Parts) -> Parts:
    """Return the arc tangent."""
    return atanh(z.times_i()).times_minus_i()


def logistic(z: Parts) -> Parts:
    """Return ``1 / (1 + exp(-z))``."""
    exponential = exp(-z)
    return divide(real(jnp.ones_like(z.re)), Parts(1 + exponential.re, exponential.im))


def sign(z: Parts) -> Parts:
    """Return ``z / |z|``, and 0 for 0."""
    length = magnitude(z)
    zero = length == 0
    return Parts(*(jnp.where(zero, 0, part / jnp.where(zero, 1, length)) for part in (z.re, z.im)))


def power(base: Parts, exponent: Parts) -> Parts:
    """Return ``exp(exponent * log(base))``.

    A base of 0 gives 1 for exponent 0, 0 for a positive real exponent, and NaN otherwise.
    """
    zero = (base.re == 0) & (base.im == 0)
    safe = Parts(jnp.where(zero, 1, base.re), base.im)
    result = exp(exponent * log(safe))
    undefined = (exponent.re < 0) | (exponent.im != 0)
    zero_or_nan = jnp.where(undefined, jnp.nan, 0).astype(base.re.dtype)
    at_zero = jnp.where(undefined | (exponent.re != 0), zero_or_nan, 1)
    return Parts(jnp.where(zero, at_zero, result.re), jnp.where(zero, zero_or_nan, result.im))


def integer_power(z: Parts, exponent: int) -> Parts:
    """Return ``z`` to the power ``exponent`` by repeated squaring; a negative power is inverted."""
    result, square, remaining = real(jnp.ones_like(z.re)), z, abs(exponent)
    while remaining:
        if remaining & 1:
            result = result * square
        remaining >>= 1
        square = square * square if remaining else square
    return divide(real(jnp.ones_like(z.re)), result) if exponent < 0 else result


def product(z: Parts, axes: tuple[int, ...]) -> Parts:
    """Return the product over ``axes``."""
    one, zero = (jnp.asarray(n, z.re.dtype) for n in (1, 0))
    pair = lax.reduce((z.re, z.im), (one, zero), _times, axes)
    return Parts(*pair)


def running_product(z: Parts, axis: int, reverse: bool) -> Parts:
    """Return the cumulative product along ``axis``; a sequential scan if its size is symbolic."""
    parts = (z.re, z.im)
    if not is_symbolic(z.re.shape[axis]):
        return Parts(*lax.associative_scan(_times, parts, reverse=reverse, axis=axis))
    rows = tuple(jnp.moveaxis(part, axis, 0) for part in parts)
    start = jnp.ones_like(rows[0][0]), jnp.zeros_like(rows[0][0])
    _, results = lax.scan(lambda last, row: (_times(last, row),) * 2, start, rows, reverse=reverse)
    return Parts(*(jnp.moveaxis(part, 0, axis) for part in results))


def _times(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return the product of two complex numbers, each a pair of arrays."""
    result = Parts(a[0], a[1]) * Parts(b[0], b[1])
    return result.re, result.im
