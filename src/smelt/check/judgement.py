"""The one judge of results: equal bits for what is declared exact, measured rounding for the rest.

Verification, bisection and the tests of passes all ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smelt.check.compare import Comparison, Slack, Tolerance, compare
from smelt.check.measure import MARGIN, allowance
from smelt.passes.base import Exactness
from smelt.runtime.interface import Value

ULP_MARGIN = 4.0
"""Allowed multiple of the measured rounding for each ulp that a pass declares."""


def margin_of(declared: Exactness) -> float:
    """The multiple of measured rounding by which a result may move."""
    return MARGIN + ULP_MARGIN * declared.ulp


def compare_declared(
    expected: Sequence[Value],
    actual: Sequence[Value],
    declared: Exactness,
    movement: Callable[[], Slack],
    names: Sequence[str] = (),
) -> list[Comparison]:
    """Compare outputs as ``declared`` asks for, one comparison an output.

    ``movement`` gives how far rounding moves each element, and is asked only where rounding is
    allowed: to measure it takes several runs.
    """
    if declared.kind == "exact":
        bits = Tolerance(signed_zero=declared.zero_sign)
        return compare(expected, actual, bits, names=names)
    slack = allowance(expected, movement(), margin_of(declared))
    return compare(expected, actual, names=names, slack=slack)
