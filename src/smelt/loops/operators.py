"""Operators of the language: each as C for one element and for vectors, and as NumPy."""

from __future__ import annotations

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
    def kind(self) -> str:
        """``float``, ``int`` or ``bool``."""

    @property
    def f(self) -> str:
        """The suffix of functions of math.h."""

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
    """One operator: ``c`` is its text with operands ``{0}``, ``{1}`` and the suffix ``{f}``.

    ``vectors`` has the texts of widths at which it is another one.
    """

    name: str
    c: str
    numpy: Callable[..., Any]
    vectors: Mapping[str, str] = field(default_factory=dict)

    def text(self, width: str, f: str, *operands: str) -> str:
        """Return the C of the operator applied to ``operands``."""
        return self.vectors.get(width, self.c).format(*operands, f=f)


def _larger(v: Any, a: Any) -> Any:
    """Return the larger; a vector's ``a`` where one is NaN, else the NaN."""
    if np.ndim(v) or np.ndim(a):
        return np.where(v > a, v, a)
    return v if v > a or np.isnan(v) else a


def _power(v: Any, p: Any) -> Any:
    """Return ``abs(v) ** p`` in the type of ``v``."""
    return np.power(np.abs(v), p)


ADD = Operator("add", "{0} + {1}", lambda v, a: v + a)
MULTIPLY = Operator("multiply", "{0} * {1}", lambda v, a: v * a)
DIVIDE = Operator("divide", "{0} / {1}", lambda v, a: v / a)
MULTIPLY_ADD = Operator("multiply-add", "{0} * {1} + {2}", lambda w, v, a: w * v + a)
"""One statement, so that compilers may contract it."""

NOT_BELOW_0 = Operator(
    "not below 0", "{0} < 0 ? 0 : {0}", lambda v: np.where(v < 0, 0, v), {LANES: "NOT_BELOW_0({0})"}
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
"""The same in a form that is faster, and longer, where the second is in a register."""

LARGER_INTEGER = Operator("larger integer", "{0} > {1} ? {0} : {1}", _larger)

BETTER = Operator(
    "better",
    "{2} < 0 || {0} > {1} || ({0} != {0} && {1} == {1})",
    lambda v, a, found: found < 0 or v > a or (np.isnan(v) and not np.isnan(a)),
)
"""True if ``v`` replaces the largest number so far, which was at index ``found``."""


@dataclass(frozen=True)
class Monoid:
    """A way to combine numbers in any order: ``combine`` of a new value and the result so far.

    - ``in_loop``: the form of ``combine`` in a loop whose result so far is in a register.
    - ``lowest``: the identity is the lowest value, else 0.
    - ``repeats``: an element may be combined twice.
    - ``watches``: in vectors, ``combine`` loses NaN, which must be looked for.
    """

    name: str
    combine: Operator
    in_loop: Operator
    lowest: bool = False
    repeats: bool = False
    watches: bool = False

    def start(self, type_: ElementType) -> float:
        """Return the identity among the numbers of a type."""
        if not self.lowest:
            return 0
        if type_.kind == "float":
            return float("-inf")
        return -(2 ** (8 * type_.size - 1)) if type_.signed else 0


SUM = Monoid("sum", ADD, ADD)
LARGEST = Monoid("largest", LARGER, LARGER_SO_FAR, lowest=True, repeats=True, watches=True)
LARGEST_INTEGER = Monoid("largest integer", LARGER_INTEGER, LARGER_INTEGER, True, True)
