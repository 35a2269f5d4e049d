"""Convert constants to float32 attributes, without rounding."""

from __future__ import annotations

import numpy as np

from smelt.ir.rule import Miss


def as_float32(array: np.ndarray | None) -> float | Miss:
    """Return the number that all elements of ``array`` equal, if float32 holds it exactly.

    Returns a Miss for None, an empty array, integers, elements that differ, NaN, infinity, and a
    float64 that float32 would round.
    """
    if array is None or not array.size or array.dtype.kind not in "fV":
        return Miss("the factor is not a floating-point constant")
    first = array.reshape(-1)[0]
    number = float(first)
    if not np.isfinite(number):
        return Miss("the factor is infinite or NaN")
    if not bool(np.all(array == first)):
        return Miss("the elements of the factor differ")
    if float(np.float32(number)) != number:
        return Miss("the factor is a float64 that a float32 attribute would round")
    return number
