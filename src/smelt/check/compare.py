"""Compare two lists of outputs element by element, with tolerances for floating point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.check.float_errors import absolute_error, relative_errors
from smelt.ir.floats import is_float, ulp_distance
from smelt.runtime.interface import Value


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference; an element passes if any of the three bounds admits it.

    ``ulp`` bounds the distance in units in the last place, ``atol + rtol * |expected|`` the
    absolute error. NaN equals NaN, infinities must be equal; integers, booleans and strings are
    compared exactly. With ``signed_zero``, -0 and +0 differ.
    """

    ulp: float = 0.0
    rtol: float = 0.0
    atol: float = 0.0
    signed_zero: bool = False

    def __str__(self) -> str:
        return f"{self.ulp:g} ulp, rtol {self.rtol:g}, atol {self.atol:g}"


EXACT = Tolerance()


@dataclass(frozen=True)
class Comparison:
    """The comparison of one output.

    ``where``, ``expected``, ``actual``, ``error`` and ``ulp`` describe one element: the one with
    the most ulp among those that fail, or among all. If rounding was measured on the source, one
    ulp is the measured movement and ``allowed`` is their allowed number; else one ulp is a unit in
    the last place. ``peak_rel`` is the largest error relative to the largest magnitude of the
    output, ``mean_rel`` the mean error relative to the mean magnitude. ``failed`` counts elements
    beyond the tolerance, ``unstable`` the elements that rounding alone decides in the source.
    ``problem`` is set if the whole output differs, for example in its type.
    """

    name: str
    kind: str
    failed: int = 0
    elements: int = 0
    ulp: float = 0.0
    allowed: float = 0.0
    error: float = 0.0
    peak_rel: float = 0.0
    mean_rel: float = 0.0
    where: tuple[int, ...] = ()
    expected: str = ""
    actual: str = ""
    unstable: int = 0
    problem: str = ""

    @property
    def ok(self) -> bool:
        """True if no element fails and the output as a whole is comparable."""
        return not self.problem and self.failed == 0

    def to_json(self) -> dict[str, Any]:
        """Return the fields and ``ok`` as JSON data."""
        return {"ok": self.ok, **self.__dict__, "where": list(self.where)}

    def __str__(self) -> str:
        """Return one sentence about the output and its worst element."""
        if self.problem:
            return f"output {self.name!r}: {self.problem}"
        if self.ok:
            return f"output {self.name!r}: {error_in_words(self)}"
        allowed = f", {self.allowed:g} allowed" if self.allowed else ""
        return (
            f"output {self.name!r}{list(self.where)}: expected {self.expected}, got {self.actual}"
            f" ({self.ulp:.3g} ulp{allowed}; {self.failed} of {self.elements} elements differ)"
        )


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """Return the comparison with the largest error; failed ones come first, then larger ulp."""
    return max(comparisons, key=lambda c: (not c.ok, c.ulp, c.error), default=Comparison("", ""))


def error_in_words(comparison: Comparison) -> str:
    """Return ``largest error 1.7e-06 (7 ulp, 80 allowed)``, or ``equal bits`` without an error."""
    if not comparison.error:
        return "equal bits"
    allowed = f", {comparison.allowed:g} allowed" if comparison.allowed else ""
    return f"largest error {comparison.error:.2g} ({comparison.ulp:.2g} ulp{allowed})"


Slack = Sequence[np.ndarray | None]
"""For each output, the allowed absolute error of each element, or None. An element with an infinite
one is not compared: rounding alone decides it."""


def compare(
    expected: Sequence[Value],
    actual: Sequence[Value],
    tolerance: Tolerance = EXACT,
    *,
    names: Sequence[str] = (),
    slack: Slack = (),
    margin: float = 0.0,
) -> list[Comparison]:
    """Return one comparison for each pair of outputs.

    An element passes within ``tolerance``, or within its own bound in ``slack``. ``margin`` is the
    number of ulp to which that bound corresponds, for the report. Dtypes and shapes must be equal;
    lists of different length give one failed comparison.
    """
    if len(expected) != len(actual):
        problem = f"there are {len(actual)} outputs instead of {len(expected)}"
        return [Comparison("*", "list", problem=problem)]
    comparisons: list[Comparison] = []
    for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
        name = names[index] if index < len(names) else str(index)
        allowed = slack[index] if index < len(slack) else None
        limit = Limit(tolerance, allowed, margin)
        comparisons += _compare_value(name, left, right, limit)
    return comparisons


@dataclass(frozen=True)
class Limit:
    """The allowed difference of one output; see ``compare``. ``slack`` has the allowed absolute
    error of each element, None if it was not measured on the source."""

    tolerance: Tolerance = EXACT
    slack: np.ndarray | None = None
    margin: float = 0.0

    def without_slack(self) -> Limit:
        """Return a limit with the tolerance alone."""
        return Limit(self.tolerance)


def _compare_value(name: str, expected: Value, actual: Value, limit: Limit) -> list[Comparison]:
    """Compare two values: arrays, sequences of tensors, maps or optionals."""
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        if len(expected) != len(actual):
            problem = f"there are {len(actual)} tensors instead of {len(expected)}"
            return [Comparison(name, "sequence", problem=problem)]
        pairs = zip(expected, actual, strict=True)
        return [
            comparison
            for index, (left, right) in enumerate(pairs)
            for comparison in _compare_value(f"{name}[{index}]", left, right, limit.without_slack())
        ]
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            return [Comparison(name, "map", problem=f"the keys are {[*actual]!r:.60}")]
        left, right = (np.asarray([side[key] for key in expected]) for side in (expected, actual))
        return [compare_arrays(name, left, right, limit)]
    if expected is None or actual is None:
        problem = "" if expected is actual else f"expected {expected!r:.40}, got {actual!r:.40}"
        return [Comparison(name, "optional", problem=problem)]
    return [compare_arrays(name, np.asarray(expected), np.asarray(actual), limit)]


def compare_arrays(name: str, expected: np.ndarray, actual: np.ndarray, limit: Limit) -> Comparison:
    """Compare two arrays; a different dtype or shape is one failed comparison.

    The slack of ``limit`` is ignored for an array of another shape, and for complex numbers."""
    kind = _kind(expected)
    text = all(array.dtype.kind in "OUST" for array in (expected, actual))
    if not text and expected.dtype != actual.dtype:
        problem = f"the dtype is {actual.dtype}, not {expected.dtype}"
        return Comparison(name, kind, problem=problem)
    if expected.shape != actual.shape:
        problem = f"the shape is {list(actual.shape)}, not {list(expected.shape)}"
        return Comparison(name, kind, problem=problem)
    if expected.size == 0:
        return Comparison(name, kind)
    if limit.slack is not None and limit.slack.shape != expected.shape:
        limit = limit.without_slack()
    if expected.dtype.kind == "c":
        return _compare_complex(name, expected, actual, limit)
    if is_float(expected.dtype):
        return _compare_floats(name, expected, actual, limit)
    return _compare_exactly(name, expected, actual, limit.slack)


def _kind(array: np.ndarray) -> str:
    """Return dtype and shape as text: ``float32[2, 3]``."""
    return f"{array.dtype}{list(array.shape)}"


def _compare_complex(
    name: str, expected: np.ndarray, actual: np.ndarray, limit: Limit
) -> Comparison:
    """Compare complex numbers as pairs of real numbers."""
    a, b = (np.stack([array.real, array.imag], axis=-1) for array in (expected, actual))
    return compare_arrays(name, a, b, limit.without_slack())


def _compare_exactly(
    name: str, expected: np.ndarray, actual: np.ndarray, slack: np.ndarray | None
) -> Comparison:
    """Compare integers, booleans or strings for equality, except where ``slack`` is infinite.

    The element that is reported is the integer with the largest error, else the first that differs.
    """
    wrong = np.asarray(expected != actual)
    unstable = np.zeros(expected.shape, bool) if slack is None else ~np.isfinite(slack)
    failed = wrong & ~unstable
    is_integer = expected.dtype.kind in "iu"
    rank: np.ndarray = failed.astype(np.float64)
    if is_integer:
        rank *= np.abs(expected.astype(np.float64) - actual.astype(np.float64)) + 1
    worst = _index(np.argmax(rank), expected.shape)
    error = 0.0
    if is_integer and failed.any():
        error = float(abs(int(expected[worst]) - int(actual[worst])))
    return Comparison(
        name,
        _kind(expected),
        failed=int(failed.sum()),
        elements=expected.size,
        error=error,
        where=worst,
        expected=str(expected[worst]),
        actual=str(actual[worst]),
        unstable=int((wrong & unstable).sum()),
    )


def _compare_floats(
    name: str, expected: np.ndarray, actual: np.ndarray, limit: Limit
) -> Comparison:
    """Compare floats with the tolerance and the slack of ``limit``."""
    allowed = np.zeros(expected.shape) if limit.slack is None else limit.slack
    unstable = np.isposinf(allowed)
    allowed = np.where(unstable, 0.0, allowed)
    with np.errstate(all="ignore"):
        expected_wide, actual_wide = expected.astype(np.float64), actual.astype(np.float64)
        distance = ulp_distance(expected, actual)
        error = absolute_error(expected_wide, actual_wide, distance)
        ulp = distance
        if limit.margin:
            ulp = np.where(distance == 0, 0.0, error * limit.margin / allowed)
            ulp = np.where(np.isnan(ulp), np.inf, ulp)
        passed = _passed_mask(expected_wide, actual_wide, distance, error, limit.tolerance, allowed)
    failed = ~passed & ~unstable
    counted_error, ulp = np.where(unstable, 0.0, error), np.where(unstable, 0.0, ulp)
    # the worst element is reported: among failed elements, or among all if none failed
    rank = np.where(failed, 1.0 + ulp, 0.0) if failed.any() else ulp
    worst = _index(np.argmax(rank), expected.shape)
    peak_rel, mean_rel = relative_errors(expected_wide, actual_wide, counted_error)
    return Comparison(
        name,
        _kind(expected),
        failed=int(failed.sum()),
        elements=expected.size,
        ulp=float(ulp[worst]),
        allowed=limit.margin,
        error=float(counted_error[worst]),
        peak_rel=peak_rel,
        mean_rel=mean_rel,
        where=worst,
        expected=str(expected[worst]),
        actual=str(actual[worst]),
        unstable=int((~passed & unstable).sum()),
    )


def _passed_mask(
    expected: np.ndarray,
    actual: np.ndarray,
    distance: np.ndarray,
    error: np.ndarray,
    tolerance: Tolerance,
    allowed: np.ndarray,
) -> np.ndarray:
    """Return a mask of the elements whose difference is allowed.

    ``distance`` is in ulp, ``error`` absolute. An element passes if both values are the same, or
    finite and within ``tolerance`` or its own bound in ``allowed``.
    """
    finite = np.isfinite(expected) & np.isfinite(actual)
    bound = np.maximum(tolerance.atol + tolerance.rtol * np.abs(expected), allowed)
    passed = (distance == 0) | (finite & ((distance <= tolerance.ulp) | (error <= bound)))
    if tolerance.signed_zero:
        zeros = (expected == 0) & (actual == 0)
        passed &= ~(zeros & (np.signbit(expected) != np.signbit(actual)))
    return np.asarray(passed)


def _index(flat: np.intp | int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of an element from ``flat``, its position in row-major order."""
    return tuple(int(item) for item in np.unravel_index(int(flat), shape))
