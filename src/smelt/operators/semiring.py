"""Semirings to contract over: plus, times, and the neutral elements of both.

Models store a ``Semiring`` as text, a name of ``SEMIRINGS`` or ``plus,times,zero,one``, so a model
alone says what it computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from smelt.errors import UsageError


@dataclass(frozen=True)
class Plus:
    """An operator that sums: its ufunc, the ONNX reduction, its neutral element, its types."""

    ufunc: np.ufunc
    reduction: str
    neutral: float
    kinds: str
    """The kinds of NumPy's element types that the operator takes; ``V`` stands for bfloat16."""


NUMBERS, FLOATS, BOOLEANS = "iufV", "fV", "b"
COMPLEX = "c"
PLUS: Mapping[str, Plus] = {
    "Add": Plus(np.add, "ReduceSum", 0.0, NUMBERS + COMPLEX),
    "Max": Plus(np.maximum, "ReduceMax", -math.inf, NUMBERS),
    "Min": Plus(np.minimum, "ReduceMin", math.inf, NUMBERS),
    "Or": Plus(np.logical_or, "ReduceMax", 0.0, BOOLEANS),
    "And": Plus(np.logical_and, "ReduceMin", 1.0, BOOLEANS),
    "LogAddExp": Plus(np.logaddexp, "ReduceLogSumExp", -math.inf, FLOATS),
}
TIMES: Mapping[str, Callable[..., np.ndarray]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "And": np.logical_and,
    "Or": np.logical_or,
}


@dataclass(frozen=True)
class Semiring:
    """``plus`` sums, ``times`` combines two elements: names of ``PLUS`` and of ``TIMES``.

    ``zero`` is the sum of no elements, ``one`` the neutral element of ``times``. ``times`` must
    distribute over ``plus`` on the contracted numbers, because sums are taken as early as possible:
    the maximum of products does so for numbers that are not negative. Raises UsageError E657 for
    unknown operators, and for elements that are not neutral.
    """

    plus: str
    times: str
    zero: float
    one: float

    def __post_init__(self) -> None:
        """Raise UsageError E657 if the operators and elements do not form a semiring."""
        self._check_operators()
        self._check_numbers()
        self._check_neutral()

    def _check_operators(self) -> None:
        """Raise UsageError E657 for unknown operators, and for operators of different elements."""
        for role, name, table in (("plus", self.plus, PLUS), ("times", self.times, TIMES)):
            if name not in table:
                raise UsageError(
                    "E657",
                    f"{name!r} cannot be the {role} of a semiring",
                    fix=f"use one of {', '.join(table)}",
                    why="the operator is not one that smelt knows in this place",
                )
        if (self.times in ("And", "Or")) != self.is_of_booleans:
            why = f"{self.plus} and {self.times} are not of the same elements"
            raise UsageError(
                "E657",
                "these operators for plus and times do not form a semiring",
                why=why,
                fix=f"choose one of {', '.join(SEMIRINGS)}",
            )

    def _check_numbers(self) -> None:
        """Raise UsageError E657 unless zero and one are real numbers."""
        for number in (self.zero, self.one):
            if not isinstance(number, int | float | np.number) or isinstance(
                number, np.complexfloating
            ):
                raise UsageError(
                    "E657",
                    f"{number!r} cannot be the zero or one of a semiring",
                    fix="give a number, such as 0 or -inf",
                    why="zero and one of a semiring are real numbers",
                )

    def _check_neutral(self) -> None:
        """Raise UsageError E657 unless zero and one are neutral elements, tried on samples."""
        for role, neutral, combine in (
            ("zero", self.zero, PLUS[self.plus].ufunc),
            ("one", self.one, TIMES[self.times]),
        ):
            sample = np.array([False, True] if self.is_of_booleans else [0.0, 1.0, 2.0])
            combined = combine(np.asarray(neutral, sample.dtype), sample)
            if not np.array_equal(combined, sample):
                name = self.plus if role == "zero" else self.times
                why = f"{name}({neutral}, x) gives {combined.tolist()} of x in {sample.tolist()}"
                raise UsageError(
                    "E657",
                    f"{neutral} is not the {role} of a semiring",
                    why=why,
                    fix="give the neutral element of the operator, or leave it out",
                )

    @property
    def is_of_booleans(self) -> bool:
        """True if its elements are booleans."""
        return PLUS[self.plus].kinds == BOOLEANS

    @property
    def reduction(self) -> str:
        """Return the operator of ONNX that sums along axes."""
        return PLUS[self.plus].reduction

    def supports(self, dtype: np.dtype) -> bool:
        """True if the semiring is defined on elements of ``dtype``, including its zero and one."""
        if dtype.kind == COMPLEX and self.times != "Mul":
            return False
        if dtype.kind not in PLUS[self.plus].kinds:
            return False
        return all(_is_among(number, dtype) for number in (self.zero, self.one))

    def combine(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the product of each pair of elements, by broadcasting."""
        return TIMES[self.times](a, b)

    def sum(self, terms: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """Return the sum along ``axes`` in the element type of ``terms``; ``zero`` if there are no
        terms."""
        if not axes:
            return terms
        if 0 in (terms.shape[axis] for axis in axes):
            shape = [size for axis, size in enumerate(terms.shape) if axis not in axes]
            return np.full(shape, self.zero_in(terms.dtype))
        if self.plus == "LogAddExp":
            return _log_sum_exp(terms, axes)
        # np.add sums small integers in a wider type unless told otherwise; others take no dtype.
        dtype = terms.dtype if self.plus == "Add" else None
        return np.asarray(PLUS[self.plus].ufunc.reduce(terms, axes, dtype))

    @property
    def bound(self) -> str | None:
        """Return the operator that turns the reduction of no elements into ``zero``; None if ONNX's
        reduction gives ``zero`` already.

        For ``max_times``, ReduceMax of no elements is -inf, and Max with 0 makes it 0.
        """
        if self.zero == PLUS[self.plus].neutral:
            return None
        return "Min" if self.plus == "Min" else "Max"

    def zero_in(self, dtype: np.dtype) -> np.ndarray:
        """Return ``zero`` as a rank-0 array; infinity of integers is their lowest or highest
        number."""
        return _number(self.zero, dtype)

    def neutral_in(self, dtype: np.dtype) -> np.ndarray:
        """Return the start of a sum: it changes no element of ``dtype``."""
        return _number(PLUS[self.plus].neutral, dtype)

    def __str__(self) -> str:
        """Return its name if it has one, else ``plus,times,zero,one``."""
        for name, semiring in SEMIRINGS.items():
            if semiring == self:
                return name
        return f"{self.plus},{self.times},{self.zero!r},{self.one!r}"


def _is_among(value: float, dtype: np.dtype) -> bool:
    """True if elements of ``dtype`` can be ``value``; see ``zero_in`` for infinities."""
    if dtype.kind not in "iu" or math.isinf(value):
        return True
    limits = np.iinfo(dtype)
    return value == int(value) and limits.min <= value <= limits.max


def _number(value: float, dtype: np.dtype) -> np.ndarray:
    """Return ``value`` as a rank-0 array; infinity in integers is their lowest or highest
    number."""
    if dtype.kind in "iu" and math.isinf(value):
        limits = np.iinfo(dtype)
        value = limits.min if value < 0 else limits.max
    return np.asarray(value, dtype)


def _log_sum_exp(terms: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the logarithm of the sum of exponentials along ``axes``, without overflow."""
    top = np.max(terms, axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0).astype(terms.dtype)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(terms - top), axis=axes, keepdims=True)) + top
    return np.asarray(np.squeeze(total, axis=axes)).astype(terms.dtype)


SEMIRINGS: Mapping[str, Semiring] = {
    "sum_product": Semiring("Add", "Mul", 0.0, 1.0),
    "max_plus": Semiring("Max", "Add", -math.inf, 0.0),
    "min_plus": Semiring("Min", "Add", math.inf, 0.0),
    "max_times": Semiring("Max", "Mul", 0.0, 1.0),
    "max_min": Semiring("Max", "Min", -math.inf, math.inf),
    "min_max": Semiring("Min", "Max", math.inf, -math.inf),
    "or_and": Semiring("Or", "And", 0.0, 1.0),
    "log_sum_exp": Semiring("LogAddExp", "Add", -math.inf, 0.0),
}
"""The semirings by name."""


def semiring_of(text: object) -> Semiring:
    """Return the semiring that ``text`` names or spells; raises UsageError E657 for other texts."""
    if isinstance(text, Semiring):
        return text
    by_name = SEMIRINGS.get(str(text))
    if by_name is not None:
        return by_name
    parts = str(text).split(",")
    try:
        plus, times, zero, one = parts
        return Semiring(plus.strip(), times.strip(), float(zero), float(one))
    except ValueError as error:
        raise UsageError(
            "E657",
            f"{text!r} is not a semiring",
            fix=f"use one of {', '.join(SEMIRINGS)}, or plus,times,zero,one as in Max,Mul,0,1",
            why="it is neither the name of a semiring nor of the form plus,times,zero,one",
        ) from error


def semiring_on(text: object, dtype: np.dtype | None) -> Semiring:
    """Return ``semiring_of(text)`` for elements of ``dtype``, if that is known.

    Raises ValueError for a text that is not a semiring, or not defined on ``dtype``. Exception:
    booleans may be contracted by ``sum_product``, whose sum is then Or, as in XLA.
    """
    try:
        semiring = semiring_of(text)
    except UsageError as error:
        raise ValueError(error.what) from error
    of_booleans = (
        dtype is not None and dtype.kind == BOOLEANS and semiring == SEMIRINGS["sum_product"]
    )
    if dtype is not None and not of_booleans and not semiring.supports(dtype):
        raise ValueError(f"the semiring {semiring} is not defined on {dtype}")
    return semiring
