"""Tokens are drawn from those that the filters keep, by their probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.decoding.sampling import Sampler, Sampling, sampling_of
from smelt.errors import UsageError

LOGITS = np.log(np.array([[0.1, 0.4, 0.05, 0.25, 0.2]], np.float32))
NONE = np.zeros((1, 0), np.int64)


def drawn(seen=NONE, **options):
    """The tokens that 400 draws give, with their parts of all draws."""
    sampler = Sampler(Sampling(seed=0, **options))
    tokens = [int(sampler.choose(LOGITS, seen)[0]) for _ in range(400)]
    return {token: tokens.count(token) / 400 for token in sorted(set(tokens))}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"temperature": 1.0}, [0, 1, 2, 3, 4]),
        ({"temperature": 0.0}, [1]),
        ({"temperature": 1.0, "top_k": 2}, [1, 3]),
        ({"temperature": 1.0, "top_k": 9}, [0, 1, 2, 3, 4]),
        ({"temperature": 1.0, "top_p": 0.4}, [1]),
        ({"temperature": 1.0, "top_p": 0.7}, [1, 3, 4]),
        ({"temperature": 1.0, "min_p": 0.45}, [1, 3, 4]),
        ({"temperature": 1.0, "min_p": 1.0}, [1]),
        ({"temperature": 1.0, "top_k": 4, "top_p": 0.85}, [1, 3, 4]),
    ],
)
def test_filters_keep_the_likely_tokens(options, kept):
    assert list(drawn(**options)) == kept


def test_draws_follow_the_probabilities():
    assert drawn(temperature=1.0, top_k=3) == pytest.approx(
        {1: 0.4 / 0.85, 3: 0.25 / 0.85, 4: 0.2 / 0.85}, abs=0.07
    )


def test_a_low_temperature_sharpens():
    assert drawn(temperature=0.25)[1] > 0.7


def test_earlier_tokens_become_less_likely():
    seen = np.array([[-1, 1, 1]])
    assert drawn(seen, repetition_penalty=100.0, temperature=1.0).get(1, 0) == 0
    positive = np.array([[1.0, 3.0, 2.0]], np.float32)
    sampler = Sampler(Sampling(repetition_penalty=2.0))
    assert sampler.choose(positive, seen).tolist() == [2]


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": 1.5},
        {"min_p": 2},
        {"repetition_penalty": 0},
        {"temprature": 1},
    ],
)
def test_values_that_are_not_allowed(options):
    with pytest.raises(UsageError, match="E802"):
        sampling_of(options)
