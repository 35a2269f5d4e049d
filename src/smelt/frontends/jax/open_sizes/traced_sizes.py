"""Exact values of scalars that a function computes from sizes, such as ``(x.shape[0] - 8.0) / 2``.

JAX represents a size in arithmetic with a float as an array, so its value follows only from the
equations that compute it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from smelt.frontends.jax.compat import Dim, is_symbolic

MAX_DENOMINATOR = 1024
"""The largest denominator: sizes below 2^14 are then exact in float32."""


@dataclass(frozen=True)
class Exact:
    """The number ``numerator / denominator``; the numerator may be symbolic.

    The denominator is a power of two.
    """

    numerator: Dim
    denominator: int = 1

    def numerator_over(self, denominator: int) -> Dim:
        """Return the numerator over ``denominator``, a multiple of the number's denominator."""
        return self.numerator * (denominator // self.denominator)


def exact_value(value: Any, cache: dict[int, Exact | None] | None = None) -> Exact | None:
    """Return the exact number of ``value``: a number, a size or a traced scalar.

    The number may contain symbolic sizes. Returns None if it depends on data, is rounded, or has a
    denominator above ``MAX_DENOMINATOR``. ``cache`` holds results for traced scalars by ``id``.
    """
    cache = {} if cache is None else cache
    if is_symbolic(value):
        return Exact(value)
    if isinstance(value, int | float | np.number) and not isinstance(value, np.complexfloating):
        return _of_number(value)
    if id(value) not in cache:
        cache[id(value)] = None
        get_constant = getattr(value, "get_const", None)
        constant = None if get_constant is None else get_constant()
        cache[id(value)] = _of_equation(value, cache) if constant is None else _of_array(constant)
    return cache[id(value)]


def _of_number(value: Any) -> Exact | None:
    """Return a number as ``Exact``; None if it is not finite or its denominator is too large."""
    if not math.isfinite(value):
        return None
    numerator, denominator = float(value).as_integer_ratio()
    if denominator > MAX_DENOMINATOR:
        return None
    return Exact(int(value)) if denominator == 1 else Exact(numerator, denominator)


def _of_array(constant: Any) -> Exact | None:
    """Return the value of a constant scalar as ``Exact``; None for other arrays."""
    array = np.asarray(constant)
    is_number = array.ndim == 0 and array.dtype.kind in "iuf"
    return _of_number(array[()]) if is_number else None


def _of_equation(value: Any, cache: dict[int, Exact | None]) -> Exact | None:
    """Return the value of a traced scalar, computed from the equation that produces it.

    Returns None for inputs of the function and for tracers of ``vmap`` and ``grad``.
    """
    equation = getattr(value, "parent", None)
    if equation is None or np.ndim(value):
        return None
    name = equation.primitive.name
    if name == "dim_as_value":
        return Exact(equation.params["dim"])
    if name not in STEPS:
        return None
    operands = [exact_value(operand, cache) for operand in equation.in_tracers]
    numbers = [operand for operand in operands if operand is not None]
    if len(numbers) < len(operands):
        return None
    exact = STEPS[name](*numbers)
    return exact if exact is not None and _is_exact_in(jnp.result_type(value), exact) else None


def _is_exact_in(dtype: Any, exact: Exact) -> bool:
    """True if ``dtype`` represents ``exact`` without rounding, for sizes below 2^14."""
    dtype = np.dtype(dtype)
    is_wide = dtype.itemsize >= 4 and dtype.kind in "if"
    return is_wide and exact.denominator <= (MAX_DENOMINATOR if dtype.kind == "f" else 1)


def _sum(combine: Callable[[Dim, Dim], Dim]) -> Callable[[Exact, Exact], Exact]:
    """Return a function that adds or subtracts two exact numbers by ``combine``."""

    def combined(a: Exact, b: Exact) -> Exact:
        """Return the sum or the difference over the common denominator."""
        common = max(a.denominator, b.denominator)
        return Exact(combine(a.numerator_over(common), b.numerator_over(common)), common)

    return combined


def _quotient(a: Exact, b: Exact) -> Exact | None:
    """Return ``a / b`` for a power of two ``b``."""
    divisor = b.numerator
    if is_symbolic(divisor) or divisor <= 0 or divisor & (divisor - 1):
        return None
    return Exact(a.numerator * b.denominator, a.denominator * divisor)


STEPS: dict[str, Callable[..., Exact | None]] = {
    "add": _sum(operator.add),
    "convert_element_type": lambda a: a,
    "div": _quotient,
    "mul": lambda a, b: Exact(a.numerator * b.numerator, a.denominator * b.denominator),
    "neg": lambda a: Exact(-a.numerator, a.denominator),
    "sub": _sum(operator.sub),
}
"""Primitives of scalars whose results are exact, by name."""


def range_length(bounds: Sequence[Any], maximum: Callable[[int, Dim], Dim]) -> Dim | None:
    """Return the length of ``arange(*bounds)``, where ``bounds`` are start, stop and step.

    ``maximum`` returns the larger of a number and a size. Returns None if a bound is not exact, or
    if the step is symbolic or 0.
    """
    cache: dict[int, Exact | None] = {}
    exact = [exact_value(bound, cache) for bound in bounds]
    numbers = [number for number in exact if number is not None]
    if len(numbers) < len(exact):
        return None
    common = max(number.denominator for number in numbers)
    first, end, step = (number.numerator_over(common) for number in numbers)
    if is_symbolic(step) or step == 0:
        return None
    distance, gap = (end - first, step) if step > 0 else (first - end, -step)
    return maximum(0, distance + gap - 1) // gap  # distance / gap, rounded up
