"""The one judge of results: equal bits for what is declared exact, measured rounding for the rest.

Verification, bisection and the tests of passes all ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from smelt.check.compare import EXACT, Comparison, Slack, Tolerance, compare
from smelt.check.measure import HALF_MARGIN, MARGIN, allowance
from smelt.passes.base import Exactness
from smelt.runtime.interface import Value

ULP_MARGIN = 4.0
"""Allowed multiple of the measured rounding for each ulp that a pass declares."""


def margin_of(declared: Exactness, base: float = MARGIN) -> float:
    """The multiple of measured rounding by which a result may move: ``base`` and what is declared.

    In 16 bits, every step of the source is perturbed, also those that a pass rewrites.
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
    """Compare outputs as ``declared`` asks for, one comparison an output; for ``base`` see
    ``margin_of``.

    ``movement`` gives how far rounding moves each element, ``undetermined`` is infinite where one
    hangs on the sign of a zero. Both take several runs, and are asked only where they matter.
    """
    tolerance, slack = EXACT, list[np.ndarray | None]([None] * len(expected))
    margin = 0.0
    if declared.kind == "exact":
        tolerance = Tolerance(signed_zero=declared.zero_sign)
    else:
        margin = margin_of(declared, base)
        slack[:] = allowance(expected, movement(), margin)
    found = compare(expected, actual, tolerance, names=names, slack=slack, margin=margin)
    if declared.zero_sign or all(each.ok for each in found):
        return found
    wider = [_larger(*pair) for pair in zip(slack, undetermined(), strict=True)]
    return compare(expected, actual, tolerance, names=names, slack=wider, margin=margin)


def _larger(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or second is None:
        return second if first is None else first
    return np.asarray(np.maximum(first, second))
