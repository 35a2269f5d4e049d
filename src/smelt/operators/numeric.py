"""The functions that a formula may call, and sums that are the same in every arithmetic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Number: TypeAlias = Any
"""A NumPy array or a ``Symbol``, which has the same operators."""

SINGLE_TOLERANCE = 2.0**-28
"""Tolerance for results that are rounded to a float: a sixteenth of its last place."""


class Arithmetic(ABC):
    """Functions of numbers, element by element, each one operator; comparisons give masks.

    Subclasses define what an operator (``op``) and a ``loop`` do. Results may differ by
    ``tolerance`` times their size.
    """

    tolerance = 0.0

    @abstractmethod
    def op(self, op_type: str, *inputs: Number) -> Number:
        """Return the result of one operator; ``inputs`` may be plain numbers of Python."""

    @abstractmethod
    def loop(
        self,
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Number, ...]:
        """Apply ``state = step(*state)`` while any element of the mask ``go_on(*state)`` is true.

        Each number of the state must keep its dtype and shape.
        """

    def terms(self, coefficients: Sequence[float]) -> Sequence[float]:
        """Return the coefficients that ``chebyshev`` sums, up to the last one beyond the
        tolerance."""
        least = self.tolerance * max(map(abs, coefficients))
        lengths = [i + 1 for i, coefficient in enumerate(coefficients) if abs(coefficient) > least]
        return coefficients[: lengths[-1]]

    def abs(self, x: Number) -> Number:
        """Return the absolute value."""
        return self.op("Abs", x)

    def cos(self, x: Number) -> Number:
        """Return the cosine of an angle in radians."""
        return self.op("Cos", x)

    def equal(self, x: Number, y: Number) -> Number:
        """Return the mask of elements that are equal."""
        return self.op("Equal", x, y)

    def erf(self, x: Number) -> Number:
        """Return the error function."""
        return self.op("Erf", x)

    def exp(self, x: Number) -> Number:
        """Return e to the power of x."""
        return self.op("Exp", x)

    def expm1(self, x: Number) -> Number:
        """Return ``exp(x) - 1``, also accurate near 0."""
        return self.op("Expm1", x)

    def floor(self, x: Number) -> Number:
        """Return the greatest integer that is not above x."""
        return self.op("Floor", x)

    def isnan(self, x: Number) -> Number:
        """Return the mask of elements that are NaN."""
        return self.op("IsNaN", x)

    def log(self, x: Number) -> Number:
        """Return the natural logarithm."""
        return self.op("Log", x)

    def log1p(self, x: Number) -> Number:
        """Return ``log(1 + x)``, also accurate near 0."""
        return self.op("Log1p", x)

    def maximum(self, x: Number, y: Number) -> Number:
        """Return the greater one of x and y."""
        return self.op("Max", x, y)

    def minimum(self, x: Number, y: Number) -> Number:
        """Return the lesser one of x and y."""
        return self.op("Min", x, y)

    def power(self, x: Number, y: Number) -> Number:
        """Return x to the power of y."""
        return self.op("Pow", x, y)

    def sigmoid(self, x: Number) -> Number:
        """Return ``1 / (1 + exp(-x))``."""
        return self.op("Sigmoid", x)

    def sin(self, x: Number) -> Number:
        """Return the sine of an angle in radians."""
        return self.op("Sin", x)

    def sqrt(self, x: Number) -> Number:
        """Return the square root; NaN below 0."""
        return self.op("Sqrt", x)

    def tanh(self, x: Number) -> Number:
        """Return the hyperbolic tangent."""
        return self.op("Tanh", x)

    def where(self, mask: Number, x: Number, y: Number) -> Number:
        """Return x where the mask is true, else y."""
        return self.op("Where", mask, x, y)


def polynomial(coefficients: Sequence[float], x: Number) -> Number:
    """Return the polynomial at x by Horner's scheme; the highest power comes first."""
    value: Number = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def chebyshev(coefficients: Sequence[float], x: Number) -> Number:
    """Return ``sum(c[k] T_k(x))`` for x in [-1, 1], by Clenshaw's recurrence."""
    first, second = x * 0.0 + coefficients[-1], x * 0.0
    twice = x + x
    for coefficient in coefficients[-2:0:-1]:
        first, second = twice * first - second + coefficient, first
    return x * first - second + coefficients[0]


def expm1(m: Arithmetic, x: Number) -> Number:
    """Return ``exp(x) - 1``, accurate near 0, by Kahan's method.

    With ``u = exp(x)`` rounded, ``(u - 1) * (x / log(u))`` cancels the rounding error. Far from 0
    the plain difference is accurate, and the quotient fails at 0 and infinity.
    """
    u = m.exp(x)
    less = u - 1.0
    corrected = m.where(~m.equal(u, 1.0), less * (x / m.log(u)), x)
    return m.where(m.abs(x) > 1.0, less, corrected)


def log1p(m: Arithmetic, x: Number) -> Number:
    """Return ``log(1 + x)``, accurate near 0, by Kahan's method.

    With ``u = 1 + x`` rounded, ``log(u) * (x / (u - 1))`` cancels the rounding error. The Where of
    ONNX Runtime keeps -0 of its last operand only, so x is the last operand.
    """
    u = x + 1.0
    log = m.log(u)
    large = m.where(m.equal(u, x), log, log * (x / (u - 1.0)))
    return m.where(~m.equal(u, 1.0), large, x)


def log1p_less_x(m: Arithmetic, x: Number) -> Number:
    """Return ``log(1 + x) - x`` for x >= -1, without the cancellation near 0.

    With ``r = x / (2 + x)``, ``log(1 + x) = 2 atanh(r)`` and ``2 r - x = -x r`` (DLMF 4.6.6).
    """
    r = x / (x + 2.0)
    square = r * r
    series = polynomial([1.0 / (2 * k + 3) for k in reversed(range(18))], square)
    by_series = r * (2.0 * square * series - x)
    return m.where((x > -0.5) & (x < 1.0), by_series, m.log1p(x) - x)
