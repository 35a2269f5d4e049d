"""Structured models compute what ONNX Runtime computes of the source, on every target."""

from __future__ import annotations

import pytest
from random_graphs.loop_trials import INVALID, WAYS, outcomes, refusal
from random_graphs.structured import KINDS, StructuredTrial, structured

QUICK = tuple(range(len(KINDS)))

SLOW = [
    pytest.param(tuple(range(start, start + 10)), WAYS, marks=pytest.mark.slow)
    for start in range(0, 2000, 10)
]


@pytest.mark.parametrize(("seeds", "ways"), [(QUICK, ("ort", "numpy")), *SLOW])
def test_structured_models_compute_the_same(seeds: tuple[int, ...], ways: tuple[str, ...]) -> None:
    flags = ("-std=c99", "-Og", "-DSMELT_NO_DISPATCH")
    found = list(outcomes(seeds, ways, flags, StructuredTrial))
    drawn = [each for each in found if each[1] != INVALID]
    assert len(drawn) >= (len(seeds) - 1) * len(ways)  # convolutions of no pixels are invalid
    assert not [each for each in drawn if each[2] and not refusal(each[2])]


@pytest.mark.parametrize("seed", [364, 1776])
def test_half_sums_and_small_images_are_drawn_as_the_runtime_takes_them(seed: int) -> None:
    assert StructuredTrial(seed).expected


def test_equal_seeds_write_equal_models() -> None:
    assert structured(7).model() == structured(7).model()
    assert structured(7).model() != structured(12).model()


def test_a_wrong_number_is_found() -> None:
    trial = StructuredTrial(QUICK[0])
    assert not trial.differences(0, trial.expected[0])
    assert trial.differences(0, [each + each.dtype.type(1) for each in trial.expected[0]])
