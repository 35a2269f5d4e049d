"""Pairs of weights of one sign are held to 128 together; what they lost is told apart."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.native.kernels.quantized.pairwise_safe import Excess, excess_of


def held(filters: np.ndarray, excess: Excess) -> np.ndarray:
    """``filters`` less the excess, as the C function takes it away."""
    left = filters.astype(int)
    for number, (first, end) in enumerate(zip(excess.first, excess.first[1:], strict=False)):
        for entry in excess.numbers[first:end]:
            left[number, entry >> 10, entry >> 8 & 3] -= (entry & 255) - 2 * (entry & 128)
    return left


@pytest.mark.parametrize("spread", [0, 20, 36, 50])
def test_no_pair_is_beyond_what_255_times_it_fits(spread: float) -> None:
    rng = np.random.default_rng(0)
    filters = rng.normal(0, spread, (7, 90, 4)).round().clip(-128, 127).astype(np.int8)
    excess = excess_of(filters)
    assert excess is not None
    assert excess.first[0] == 0
    assert excess.first[-1] == len(excess.numbers)
    pairs = held(filters, excess).reshape(-1, 2)
    for sign in (1, -1):
        most = 255 * np.maximum(sign * pairs, 0).sum(1).max()
        assert most <= 2**15 - (sign == 1)


def test_both_of_the_largest_and_of_the_least() -> None:
    filters = np.zeros((2, 12, 4), np.int8)
    filters[0, 3, 2:], filters[1, 5, :2] = 127, -128
    excess = excess_of(filters)
    assert excess == Excess([0, 1, 2], [3 << 10 | 2 << 8 | 126, 5 << 10 | 128])
    assert held(filters, excess)[0, 3].tolist() == [0, 0, 1, 127]
    assert held(filters, excess)[1, 5].tolist() == [0, -128, 0, 0]


def test_weights_of_other_signs_and_alone_are_safe() -> None:
    filters = np.array([[[127, -128, -128, 127], [-128, 0, 0, 127]]], np.int8)
    assert excess_of(filters) == Excess([0, 0], [])


def test_many_that_are_not_safe_or_few_pixels_are_not_worth_it() -> None:
    assert excess_of(np.full((3, 4, 4), 100, np.int8)) is None
    assert excess_of(np.ones((3, 4, 4), np.int8), pixels=9) is None


def test_no_weights() -> None:
    assert excess_of(np.zeros((2, 0, 4), np.int8)) == Excess([0, 0, 0], [])
