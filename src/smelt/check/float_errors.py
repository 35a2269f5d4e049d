"""The error between two arrays of floats, absolute and relative."""

from __future__ import annotations

import math

import numpy as np


def absolute_error(expected: np.ndarray, actual: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return the absolute error: 0 for a ``distance`` of 0 ulp, infinite if only one is NaN."""
    error = np.where(distance == 0, 0.0, np.abs(expected - actual))
    return np.where(np.isnan(error), np.inf, error)


def relative_errors(
    expected: np.ndarray, actual: np.ndarray, error: np.ndarray
) -> tuple[float, float]:
    """Return two relative errors: the largest error over the largest magnitude of ``expected``,
    and the mean error over the mean magnitude.
    """
    largest_magnitude = np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)
    are_finite = np.isfinite(expected) & np.isfinite(actual)
    total_magnitude = np.sum(np.abs(expected), where=are_finite)
    peak = _ratio(float(np.max(error)), largest_magnitude)
    return peak, _ratio(np.sum(error, where=are_finite), total_magnitude)


def _ratio(error: float, magnitude: float) -> float:
    """Return ``error / magnitude``; infinite if only the magnitude is 0."""
    if not error:
        return 0.0
    return float(error / magnitude) if magnitude else math.inf
