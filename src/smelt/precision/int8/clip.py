"""Choose the range that codes cover: all numbers, or fewer with a finer step.

| method | range |
|---|---|
| `minmax` | all numbers that were measured |
| `percentile` | without 0.005 % of the numbers at each end |
| `entropy` | the least Kullback-Leibler divergence of the numbers as codes from the numbers |
| `mse` | the least squared error of the numbers as codes |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from smelt.precision.int8.observe import Histogram

Ranges = Literal["minmax", "percentile", "entropy", "mse", "auto"]

OUTSIDE = 5e-5
"""The part of the numbers beyond each end of a range by percentile."""

PARTS = np.linspace(1.0, 0.1, 46)
"""The parts of the largest magnitude that are tried."""

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
    """Return the range whose codes have the least divergence from the numbers."""
    return _best_part(histogram, _divergence)


def _best_part(histogram: Histogram, cost: Callable[[Histogram, Limits], float]) -> Limits:
    """Return the least costly range of numbers below a magnitude; ties take the largest."""
    low, high = histogram.smallest, histogram.largest
    most = [part * max(-low, high) for part in PARTS]
    tried = [(max(low, -each), min(high, each)) for each in most if low < each and -each < high]
    return min(tried, key=lambda limits: cost(histogram, limits))


def _codes(histogram: Histogram, limits: Limits) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the centers of the bins, their codes with ``limits``, and the scale."""
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    scale = (high - low) / (LEVELS - 1)
    edges = histogram.edges
    centers = (edges[:-1] + edges[1:]) / 2
    return centers, np.clip(np.rint((centers - low) / scale), 0, LEVELS - 1), scale


def _squared_error(histogram: Histogram, limits: Limits) -> float:
    """Return the sum of the squared errors of the numbers as codes."""
    centers, codes, scale = _codes(histogram, limits)
    error = np.square(codes * scale + min(limits[0], 0.0) - centers)
    inside = np.abs(codes * scale + min(limits[0], 0.0) - centers) <= scale / 2
    # Numbers are spread over a bin, so none of them is exact.
    expected = np.where(inside, scale**2 / 12, error)
    return float(np.sum(histogram.counts * expected))


def _divergence(histogram: Histogram, limits: Limits) -> float:
    """Return the divergence of the numbers, with those cut off at the ends, from their codes."""
    centers, codes, _ = _codes(histogram, limits)
    counts = histogram.counts.astype(np.float64)
    inside = (centers >= limits[0]) & (centers <= limits[1])
    places = np.flatnonzero(inside)
    if not len(places):
        return np.inf
    kept = np.where(inside, counts, 0)
    # Each code spreads its numbers evenly over the bins that had any.
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
    """Return the range of ``histogram`` by ``method``; one without counts keeps its numbers."""
    if not histogram.counts.any() or not histogram.smallest < histogram.largest:
        return minmax(histogram)
    low, high = METHODS[method](histogram)
    return (low, high) if low < high else minmax(histogram)
