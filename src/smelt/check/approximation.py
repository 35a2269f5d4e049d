"""Compare models that approximate on purpose, such as 4-bit weights: report the error, do not fail.

Only the user knows the acceptable error. So without a tolerance, any finite error passes that is
smaller than the numbers themselves. Non-finite values, types and shapes must agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from smelt.check.compare import Comparison, Slack, Tolerance
from smelt.check.comparison_side import ComparisonSide
from smelt.ir.approximation import approximation_of
from smelt.ir.floats import is_float
from smelt.runtime.interface import Value

ANY = Tolerance(atol=math.inf)
UNRELATED = 1.0
"""The mean error, relative to the mean magnitude, from which two outputs count as unrelated.

Weights of 4 bits gave 0.1 to 0.3.
"""


def approximation_between(first: ComparisonSide, second: ComparisonSide) -> str:
    """Return the name of the approximation by which the two sides differ, "" if there is none.

    A model carries a mark if it approximates on purpose, for example by 4-bit weights. Two models
    with the same mark run in the same kernels, so they have to agree exactly.
    """
    marks = [approximation_of(side.model or side.compiled) for side in (first, second)]
    is_same_approximation = marks[0] == marks[1] and None not in (first.model, second.model)
    return "" if is_same_approximation else marks[1] or marks[0]


def infinite_slack(expected: Sequence[Value]) -> Slack:
    """Return infinite slack for integer and boolean outputs: ``ANY`` would compare them exactly."""
    return [
        None if not isinstance(value, np.ndarray) or is_float(value.dtype) else _infinite(value)
        for value in expected
    ]


def flag_unrelated(outputs: Sequence[Comparison]) -> list[Comparison]:
    """Return ``outputs``, with a problem set where the mean error is as large as the numbers."""
    problem = "its mean error is as large as its numbers, too large for an approximation"
    return [
        replace(output, problem=problem) if UNRELATED <= output.mean_rel < math.inf else output
        for output in outputs
    ]


def _infinite(value: np.ndarray) -> np.ndarray:
    """Return infinity for each element of ``value``: the slack that accepts any number."""
    return np.full(value.shape, math.inf)
