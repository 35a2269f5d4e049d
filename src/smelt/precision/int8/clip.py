"""Choose the range of an activation that its codes cover, from a histogram of its numbers.

A smaller range clips some numbers, and has a finer step for the others. A code is the integer that
stands for a number.

| method | range |
|---|---|
| `minmax` | all numbers that were measured |
| `percentile` | without 0.005 % of the numbers at each end |
| `entropy` | that with the least Kullback-Leibler divergence of the quantized numbers from all |
| `mse` | that with the least squared error of the quantized numbers |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from smelt.precision.int8.observe import Histogram

Ranges = Literal["minmax", "percentile", "entropy", "mse", "auto"]

OUTSIDE = 5e-5
"""The fraction of the numbers beyond each end of a range by percentile."""

PARTS = np.linspace(1.0, 0.1, 46)
"""The fractions of the largest magnitude that ``entropy`` and ``mse`` try as limits."""

LEVELS = 256
"""The number of codes."""

Limits = tuple[float, float]


def minmax(histogram: Histogram) -> Limits:
    """Return the range of all numbers."""
    return histogram.smallest, histogram.largest


def percentile(histogram: Histogram) -> Limits:
    """Return the range without the outermost numbers at both ends."""
    total = np.cumsum(histogram.counts)
    edges, last = histogram.edges, total[-1]
    first = int(np.searchsorted(total, OUTSIDE * last, side="right"))
    end = int(np.searchsorted(total, (1 - OUTSIDE) * last, side="left"))
    return float(edges[first]), float(edges[min(end + 1, len(edges) - 1)])


def mse(histogram: Histogram) -> Limits:
    """Return the range with the least squared error of its codes."""
    return _best_part(histogram, _squared_error)


def entropy(histogram: Histogram) -> Limits:
    """Return the range with the least divergence of the quantized numbers from all numbers."""
    return _best_part(histogram, _divergence)


def _best_part(histogram: Histogram, cost: Callable[[Histogram, Limits], float]) -> Limits:
    """Return the range of least ``cost`` among those that clip at a fraction of the largest
    magnitude; of equal costs, the largest range."""
    low, high = histogram.smallest, histogram.largest
    most = [part * max(-low, high) for part in PARTS]
    tried = [(max(low, -each), min(high, each)) for each in most if low < each and -each < high]
    return min(tried, key=lambda limits: cost(histogram, limits))


def _codes(histogram: Histogram, limits: Limits) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the centers of the bins, the code of each center, and the scale.

    ``scale = (high - low) / 255`` and ``code = clip(round((center - low) / scale), 0, 255)``, where
    the range of codes always contains 0.
    """
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    scale = (high - low) / (LEVELS - 1)
    edges = histogram.edges
    centers = (edges[:-1] + edges[1:]) / 2
    return centers, np.clip(np.rint((centers - low) / scale), 0, LEVELS - 1), scale


def _squared_error(histogram: Histogram, limits: Limits) -> float:
    """Return the sum of the squared errors of the quantized numbers.

    A number within the range is off by up to half a step, ``scale**2 / 12`` on average; a number
    beyond it by its distance to the range.
    """
    centers, codes, scale = _codes(histogram, limits)
    error = codes * scale + min(limits[0], 0.0) - centers
    inside = np.abs(error) <= scale / 2
    expected = np.where(inside, scale**2 / 12, np.square(error))
    return float(np.sum(histogram.counts * expected))


def _divergence(histogram: Histogram, limits: Limits) -> float:
    """Return ``sum(p * log(p / q))`` over bins, p for the clipped and q for the quantized numbers.

    In p, the numbers beyond the range are added to its outermost bins. In q, the numbers of each
    code are spread evenly over its bins that are not empty.
    """
    centers, codes, _ = _codes(histogram, limits)
    counts = histogram.counts.astype(np.float64)
    inside = (centers >= limits[0]) & (centers <= limits[1])
    places = np.flatnonzero(inside)
    if not len(places):
        return np.inf
    kept = np.where(inside, counts, 0)
    code = codes.astype(np.int64)
    sums = np.bincount(code, kept, LEVELS)
    filled = np.bincount(code, kept > 0, LEVELS)
    spread = np.where(kept > 0, (sums / np.maximum(filled, 1))[code], 0)
    kept[places[0]] += counts[: places[0]].sum()
    kept[places[-1]] += counts[places[-1] + 1 :].sum()
    p, q = kept / max(kept.sum(), 1), spread / max(spread.sum(), 1)
    least = 1e-9
    return float(np.sum(p[p > 0] * np.log(p[p > 0] / np.maximum(q[p > 0], least))))


METHODS: dict[str, Callable[[Histogram], Limits]] = {
    "minmax": minmax,
    "percentile": percentile,
    "entropy": entropy,
    "mse": mse,
}
"""The function of each method; all but ``minmax`` read the counts."""


def limits_of(histogram: Histogram, method: str) -> Limits:
    """Return the range of ``histogram`` by ``method``; without counts, all measured numbers."""
    if not histogram.counts.any() or not histogram.smallest < histogram.largest:
        return minmax(histogram)
    low, high = METHODS[method](histogram)
    return (low, high) if low < high else minmax(histogram)
