"""Sides that are rough by intention, as with weights of 4 bits: measured, not judged.

Nobody but the user knows how far apart they may be, so without a tolerance any finite error is
allowed that leaves something in common. What is not finite, types and shapes have to agree all the
same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from smelt.check.compare import Comparison, Slack, Tolerance
from smelt.check.subject import Subject
from smelt.ir.approximation import approximation_of
from smelt.ir.floats import is_float
from smelt.runtime.interface import Value

ANY = Tolerance(atol=math.inf)
UNRELATED = 1.0
"""The mean error, as a part of the mean magnitude, that numbers have which know nothing of each
other; weights of 4 bits made 0.1 to 0.3."""


def roughness(first: Subject, second: Subject) -> str:
    """What is rough in one of both sides; empty if nothing is.

    Two models that are rough in the same way are run by the same kernels, so they have to agree.
    """
    marks = [approximation_of(side.model or side.compiled) for side in (first, second)]
    same = marks[0] == marks[1] and None not in (first.model, second.model)
    return "" if same else marks[1] or marks[0]


def unlimited(expected: Sequence[Value]) -> Slack:
    """Leaves out integers and booleans, such as the place of a largest number, which ``ANY`` holds
    to be equal."""
    return [
        None if not isinstance(value, np.ndarray) or is_float(value.dtype) else _infinite(value)
        for value in expected
    ]


def related(outputs: Sequence[Comparison]) -> list[Comparison]:
    """``outputs``, with a problem where the error is as large as the numbers."""
    problem = "its mean error is as large as its numbers: that is no approximation"
    return [
        replace(each, problem=problem) if UNRELATED <= each.mean_rel < math.inf else each
        for each in outputs
    ]


def _infinite(value: np.ndarray) -> np.ndarray:
    return np.full(value.shape, math.inf)
