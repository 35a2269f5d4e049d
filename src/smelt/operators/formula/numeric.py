"""What a formula may call, and sums that every arithmetic computes alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

Number: TypeAlias = Any
"""A NumPy array of doubles or booleans, or a ``Tensor``, which has the same operators."""


class Arithmetic(Protocol):
    """Functions of doubles, element by element; comparisons of numbers give masks."""

    def exp(self, x: Number) -> Number: ...
    def log(self, x: Number) -> Number: ...
    def sqrt(self, x: Number) -> Number: ...
    def sin(self, x: Number) -> Number: ...
    def cos(self, x: Number) -> Number: ...
    def floor(self, x: Number) -> Number: ...
    def abs(self, x: Number) -> Number: ...
    def isnan(self, x: Number) -> Number: ...
    def equal(self, x: Number, y: Number) -> Number: ...
    def where(self, mask: Number, x: Number, y: Number) -> Number: ...
    def power(self, x: Number, y: Number) -> Number: ...
    def maximum(self, x: Number, y: Number) -> Number: ...
    def minimum(self, x: Number, y: Number) -> Number: ...

    def loop(
        self,
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Number, ...]:
        """``state = step(*state)`` as long as any element of the mask ``go_on(*state)`` is true.

        Each number of the state must keep its dtype and shape.
        """
        ...


def polynomial(coefficients: Sequence[float], x: Number) -> Number:
    """Horner's scheme, highest power first."""
    value: Number = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def chebyshev(coefficients: Sequence[float], x: Number) -> Number:
    """``sum(c[k] T_k(x))`` for x in [-1, 1], by Clenshaw's recurrence."""
    first, second = x * 0.0 + coefficients[-1], x * 0.0
    twice = x + x
    for coefficient in coefficients[-2:0:-1]:
        first, second = twice * first - second + coefficient, first
    return x * first - second + coefficients[0]


def log1p(m: Arithmetic, x: Number) -> Number:
    """Kahan: with ``u = 1 + x`` rounded, ``log(u) * (x / (u - 1))`` undoes the rounding."""
    u = x + 1.0
    near = m.log(u) * (x / m.where(m.equal(u, 1.0), 1.0, u - 1.0))
    far = m.log(u)
    return m.where(m.equal(u, 1.0), x, m.where(m.abs(x) > 1e15, far, near))


def log1p_less_x(m: Arithmetic, x: Number) -> Number:
    """``log(1 + x) - x`` for x >= -1, without the cancellation near 0.

    With ``r = x / (2 + x)``, ``log(1 + x) = 2 atanh(r)`` and ``2 r - x = -x r`` (DLMF 4.6.6).
    """
    r = x / (x + 2.0)
    square = r * r
    series = polynomial([1.0 / (2 * k + 3) for k in reversed(range(18))], square)
    near = r * (2.0 * square * series - x)
    return m.where((x > -0.5) & (x < 1.0), near, log1p(m, x) - x)
