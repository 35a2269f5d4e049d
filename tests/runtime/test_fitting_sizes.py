"""Sizes of dims that go together are found where a model does not run at others."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.compiler import optimize_model
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text
from smelt.runtime.fitting_sizes import guesses
from smelt.runtime.interface import interface_of
from smelt.tuning import tune_model

CACHED = """
step (float[B,S,4] x, float[B,P,4] past, float[B,T] mask) => (float[B,N,4] y) {
    a = Concat<axis = 1>(past, x) i = Constant<value_ints = [2]>() m = Unsqueeze(mask, i)
    y = Mul(a, m)
}
"""
"""What is cached and what is new are as long as the mask; of ones, the mask broadcasts."""

ONE_MORE = CACHED.replace("float[B,S,4] x", "float[B,1,4] x")
EQUAL = "g (float[B,S] x, float[B,T] y) => (float[B,S] z) { z = Mul(x, y) }"
TRIED_IN_VAIN = """
g (float[S] x, float[T] y) => (float[U] z) {
    i = Constant<value_int = 900>() z = Gather(x, i) w = Gather(y, i)
}
"""


@pytest.mark.parametrize(
    ("graph", "sizes"),
    [
        (CACHED, {"B": 3, "S": 4, "P": 5, "T": 9}),
        (ONE_MORE, {"B": 3, "P": 4, "T": 5}),
        (EQUAL, {"B": 3, "S": 5, "T": 5}),
    ],
)
def test_verification_runs_at_sizes_that_go_together(graph: str, sizes: dict[str, int]) -> None:
    model = text.parse(graph)
    report = smelt.verify(model, model)
    assert [dict(trial.sizes) for trial in report.trials[2:]] == [sizes, sizes]
    assert not any(trial.skipped for trial in report.trials)


def test_an_optimization_is_verified_at_them() -> None:
    evidence = optimize_model(text.parse(CACHED), verify="final").evidence
    assert evidence is not None
    assert {"B": 3, "S": 4, "P": 5, "T": 9} in evidence.sizes


def test_sizes_that_were_given_stay() -> None:
    """Where all dims of a sum are given, and do not go together, that is told."""
    model = text.parse(CACHED)
    dims = {"S": (2, 3), "P": (2, 3), "T": (3, 4)}
    with pytest.raises(InvalidModel) as caught:
        smelt.verify(model, model, dims=dims)
    assert caught.value.code == "E321"
    assert "--dim S=2,8" in caught.value.fix
    assert "--dim T=2,8" in caught.value.fix
    report = smelt.verify(model, model, dims={"T": (4, 8)})
    assert all(trial.sizes["T"] in (4, 8) for trial in report.trials)


def test_a_run_takes_a_mask_as_long_as_it_has_to_be() -> None:
    mask = np.ones((1, 6), np.float32)
    past = np.ones((1, 4, 4), np.float32)
    assert smelt.run(text.parse(CACHED), {"mask": mask, "past": past})["y"].shape == (1, 6, 4)


def test_a_tuned_model_is_timed_at_them() -> None:
    report = tune_model(text.parse(CACHED), seconds=0.01, sizes={"P": 6}).report
    assert report["tune"]["sizes"]["T"] in (1, 7)


def test_a_model_that_fails_everywhere_says_what_it_said_first() -> None:
    with pytest.raises(InvalidModel) as caught:
        smelt.run(text.parse(TRIED_IN_VAIN), dims={"S": 2})
    assert "out" in caught.value.why
    with pytest.raises(UsageError):
        smelt.run(text.parse(CACHED), dims={"nobody": 2})


def test_what_counts_samples_is_no_part_of_a_length() -> None:
    names = {guess.name for guess in guesses(interface_of(text.parse(CACHED)))}
    assert names == {"S", "P", "T"}
    assert not any("B" in guess.parts for guess in guesses(interface_of(text.parse(CACHED))))
    alone = text.parse("g (float[B,S] x) => (float[B,S] y) { y = Relu(x) }")
    assert not list(guesses(interface_of(alone)))
