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
    if not np.isfinite(number) or not bool(np.all(array == first)):
        return Miss("the factor is not one finite number")
    if float(np.float32(number)) != number:
        return Miss("a float32 attribute cannot hold the factor")
    return number
