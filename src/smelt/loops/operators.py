"""Operators of the language: each as C for one element and for vectors, and as NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

LANES, ONE = "LANES", "1"
"""The widths of values: all lanes of the CPU's vectors, or one element."""


class ElementType(Protocol):
    """What the language needs of an element type: its C name, math.h suffix and literals."""

    @property
    def name(self) -> str:
        """The C type."""

    @property
    def modular(self) -> str:
        """The unsigned C type in which sums and products of integers wrap."""

    @property
    def kind(self) -> str:
        """``float``, ``int`` or ``bool``."""

    @property
    def f(self) -> str:
        """The suffix of functions of math.h: ``f`` in ``sqrtf`` for floats, "" for doubles."""

    @property
    def size(self) -> int:
        """The bytes of an element."""

    @property
    def signed(self) -> bool:
        """True if an integer may be negative."""

    def literal(self, value: float) -> str:
        """Return ``value`` as C."""


@dataclass(frozen=True)
class Operator:
    """One operator: C with places for operands and words of the element type, and its NumPy form.

    - ``c``: the expression. ``{0}`` and ``{1}`` are operands, ``{t}`` is the C type, ``{m}`` the
      unsigned type in which integers wrap, ``{f}`` the suffix of math.h functions.
    - ``vectors``: the expressions that differ from ``c``, by width.
    - ``lines``: statements that come before the expression.
    """

    name: str
    c: str
    numpy: Callable[..., Any]
    vectors: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    def text(self, width: str, type_: ElementType, *operands: str) -> str:
        """Return the C of the operator applied to ``operands``."""
        return _filled(self.vectors.get(width, self.c), type_, operands)

    def statements(self, type_: ElementType, *operands: str) -> list[str]:
        """Return the statements before the text."""
        return [_filled(line, type_, operands) for line in self.lines]


def _filled(text: str, type_: ElementType, operands: tuple[str, ...]) -> str:
    """Return ``text`` with operands and words of a type: ``sqrt{f}({0})`` becomes ``sqrtf(v0)``."""
    return text.format(*operands, f=type_.f, t=type_.name, m=type_.modular)


def _larger(value: Any, so_far: Any) -> Any:
    """Return the larger number. Of scalars, a NaN ``value`` wins; of vectors, ``so_far`` does."""
    if np.ndim(value) or np.ndim(so_far):
        return np.where(value > so_far, value, so_far)
    return value if value > so_far or np.isnan(value) else so_far


def _smaller(value: Any, so_far: Any) -> Any:
    """Return the smaller number, or ``value`` if that is NaN."""
    return value if value < so_far or np.isnan(value) else so_far


def _power(value: Any, exponent: Any) -> Any:
    """Return ``abs(value) ** exponent`` in the type of ``value``."""
    return np.power(np.abs(value), exponent)


ADD = Operator("add", "{0} + {1}", lambda v, a: v + a)
MULTIPLY = Operator("multiply", "{0} * {1}", lambda v, a: v * a)
DIVIDE = Operator("divide", "{0} / {1}", lambda v, a: v / a)
MULTIPLY_ADD = Operator("multiply-add", "{0} * {1} + {2}", lambda w, v, a: w * v + a)
"""One statement, so that compilers may contract it."""

NOT_BELOW_0 = Operator(
    "not below 0", "{0} < 0 ? 0 : {0}", lambda v: np.where(v < 0, 0, v), {LANES: "NOT_BELOW_0({0})"}
)
SUBTRACT = Operator("subtract", "{0} - {1}", lambda v, a: v - a)
SQUARE = Operator("square", "{0} * {0}", lambda v: v * v)
ABSOLUTE = Operator("absolute", "fabs{f}({0})", np.abs)
SQUARE_ROOT = Operator("square root", "sqrt{f}({0})", np.sqrt)
EXPONENTIAL = Operator("exponential", "exp{f}({0})", np.exp)
LOGARITHM = Operator("logarithm", "log{f}({0})", np.log)
ZERO_UNLESS_FINITE = Operator(
    "zero unless finite",
    "{0} - {0} == 0 ? {0} : 0",
    lambda v: v if np.isfinite(v) else v.dtype.type(0),
)
POWER = Operator("power", "pow{f}(fabs{f}({0}), {1})", _power)
LARGER = Operator(
    "larger",
    "{0} == {0} ? ({0} > {1} ? {0} : {1}) : {0}",
    _larger,
    {LANES: "LARGER({0}, {1})"},
)
LARGER_SO_FAR = Operator(
    "larger so far", "{0} > {1} || {0} != {0} ? {0} : {1}", _larger, LARGER.vectors
)
"""``LARGER`` in a form that is faster, and longer, where the second operand is in a register."""

SMALLER = Operator("smaller", LARGER.c.replace(">", "<"), _smaller)
SMALLER_SO_FAR = Operator("smaller so far", LARGER_SO_FAR.c.replace(">", "<"), _smaller)
LARGER_INTEGER = Operator("larger integer", "{0} > {1} ? {0} : {1}", _larger)
SMALLER_INTEGER = Operator("smaller integer", "{0} < {1} ? {0} : {1}", _smaller)

ADD_WRAPPED = Operator("add, wrapped", "({t})(({m}){0} + ({m}){1})", ADD.numpy)
MULTIPLY_WRAPPED = Operator("multiply, wrapped", "({t})(({m}){0} * ({m}){1})", MULTIPLY.numpy)
SQUARE_WRAPPED = Operator("square, wrapped", "({t})(({m}){0} * ({m}){0})", SQUARE.numpy)

BETTER = Operator(
    "better",
    "{2} < 0 || {0} > {1} || ({0} != {0} && {1} == {1})",
    lambda v, a, found: found < 0 or v > a or (np.isnan(v) and not np.isnan(a)),
)
"""True if ``v`` replaces the largest number so far, which was at index ``found``."""


LAST_LANES = Operator(
    "last lanes",
    "LAST_LANES({0}, {1})",
    lambda v, n: np.where(np.arange(v.size) < v.size - n, 0, v),
)
"""A vector whose lanes are 0 but for the last ``n``."""

SUM_OF_LANES = Operator("sum of lanes", "sum_of_lanes({0})", np.sum)


@dataclass(frozen=True)
class Monoid:
    """A way to combine numbers in any order: ``combine`` of a new value and the result so far.

    - ``in_loop``: the form of ``combine`` in a loop whose result so far is in a register.
    - ``identity``: the number that leaves every result unchanged. For integer types, an
      infinity means the highest or lowest number.
    - ``repeats``: combining an element twice gives the same result.
    - ``loses_nan``: ``combine`` of vectors loses NaN, so elements must be checked for NaN.
    """

    name: str
    combine: Operator
    in_loop: Operator
    identity: float = 0
    repeats: bool = False
    loses_nan: bool = False

    def start(self, type_: ElementType) -> float:
        """Return the identity among the numbers of a type: 127 of int8 for positive infinity."""
        if type_.kind == "float" or math.isfinite(self.identity):
            return self.identity
        bits = 1 if type_.kind == "bool" else 8 * type_.size - int(type_.signed)
        return 2**bits - 1 if self.identity > 0 else -(2**bits) if type_.signed else 0


SUM = Monoid("sum", ADD, ADD)
SUM_WRAPPED = Monoid("sum, wrapped", ADD_WRAPPED, ADD_WRAPPED)
PRODUCT = Monoid("product", MULTIPLY, MULTIPLY, 1)
PRODUCT_WRAPPED = Monoid("product, wrapped", MULTIPLY_WRAPPED, MULTIPLY_WRAPPED, 1)
LARGEST = Monoid("largest", LARGER, LARGER_SO_FAR, -math.inf, repeats=True, loses_nan=True)
SMALLEST = Monoid("smallest", SMALLER, SMALLER_SO_FAR, math.inf, repeats=True)
LARGEST_INTEGER = Monoid("largest integer", LARGER_INTEGER, LARGER_INTEGER, -math.inf, True)
SMALLEST_INTEGER = Monoid("smallest integer", SMALLER_INTEGER, SMALLER_INTEGER, math.inf, True)
