"""Compare outputs within a declared exactness, for verification, bisection and pass tests.

Exact results need equal bits; others may move by a multiple of the measured rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from smelt.check.compare import EXACT, Comparison, Slack, Tolerance, compare
from smelt.check.measure import HALF_MARGIN, MARGIN, allowance
from smelt.passes.base import Exactness
from smelt.runtime.interface import Value

ULP_MARGIN = 4.0
"""The multiple of the measured rounding that is allowed for each ulp a pass declares."""


def margin_of(declared: Exactness, base: float = MARGIN) -> float:
    """Return how many times the measured rounding a result may move.

    It is ``base``, plus ``ULP_MARGIN`` for each ulp that the passes declare. In 16 bits the base is
    enough, because every step of the source is perturbed when rounding is measured.
    """
    return base if base == HALF_MARGIN else base + ULP_MARGIN * declared.ulp


def compare_declared(
    expected: Sequence[Value],
    actual: Sequence[Value],
    declared: Exactness,
    movement: Callable[[], Slack],
    undetermined: Callable[[], Slack],
    names: Sequence[str] = (),
    base: float = MARGIN,
) -> list[Comparison]:
    """Compare outputs within the exactness ``declared``, one comparison for each output.

    ``movement`` returns how far rounding moves each element; ``undetermined`` returns infinity
    where an element depends on the sign of a zero. Both need extra runs of the source, so they are
    called only if they can change the result. ``base`` is that of ``margin_of``.
    """
    tolerance, slack = EXACT, list[np.ndarray | None]([None] * len(expected))
    margin = 0.0
    if declared.kind == "exact":
        tolerance = Tolerance(signed_zero=declared.zero_sign)
    else:
        margin = margin_of(declared, base)
        slack[:] = allowance(expected, movement(), margin)
    comparisons = compare(expected, actual, tolerance, names=names, slack=slack, margin=margin)
    if declared.zero_sign or all(comparison.ok for comparison in comparisons):
        return comparisons
    wider = [_larger(*pair) for pair in zip(slack, undetermined(), strict=True)]
    return compare(expected, actual, tolerance, names=names, slack=wider, margin=margin)


def _larger(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Return the larger slack of each element; None is no slack."""
    if first is None or second is None:
        return second if first is None else first
    return np.asarray(np.maximum(first, second))
