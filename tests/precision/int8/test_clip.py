"""Ranges by histogram: what each method keeps."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.precision.int8.clip import METHODS, limits_of
from smelt.precision.int8.observe import BINS, Histogram


def histogram(numbers: np.ndarray) -> Histogram:
    low, high = float(numbers.min()), float(numbers.max())
    counts = np.histogram(numbers, BINS, (low, high))[0] if low < high else np.zeros(BINS, int)
    return Histogram(counts, low, high)


NORMAL = np.random.default_rng(0).normal(size=200_000)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("numbers", [NORMAL, np.abs(NORMAL), -np.abs(NORMAL), NORMAL + 9])
def test_ranges_lie_within_the_numbers(method: str, numbers: np.ndarray) -> None:
    low, high = limits_of(histogram(numbers), method)
    assert min(numbers.min(), 0) <= low < high <= max(numbers.max(), 0)


@pytest.mark.parametrize(("method", "most"), [("percentile", 30), ("entropy", 30), ("mse", 90)])
def test_an_outlier_is_cut_off(method: str, most: float) -> None:
    low, high = limits_of(histogram(np.append(NORMAL, 100)), method)
    assert low < -3
    assert 3 < high < most


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("numbers", [np.zeros(5), np.full(5, 3.0)])
def test_constants_keep_their_range(method: str, numbers: np.ndarray) -> None:
    assert limits_of(histogram(numbers), method) == (numbers.min(), numbers.max())


def test_mse_keeps_evenly_spread_numbers_whole() -> None:
    numbers = np.linspace(0, 1, 100_000)
    assert limits_of(histogram(numbers), "mse") == (0, 1)
