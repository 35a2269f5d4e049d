"""Sizes that fit each other are found if a model does not run at the default sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import smelt
from smelt.compiler import optimize_model
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text
from smelt.runtime.fitting_sizes import guesses
from smelt.runtime.interface import interface_of
from smelt.runtime.size_demands import are_met, demands_of
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
    assert [dict(trial.sizes) for trial in report.trials[2:]] == [sizes] * 4
    assert not any(trial.skipped for trial in report.trials)


def test_an_optimization_is_verified_at_them() -> None:
    evidence = optimize_model(text.parse(CACHED), verify="final").evidence
    assert evidence is not None
    assert {"B": 3, "S": 4, "P": 5, "T": 9} in evidence.sizes


def test_sizes_that_were_given_stay() -> None:
    """If all dims of a sum are given, and do not fit each other, an error says so."""
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


def weight(name: str, *shape: int) -> str:
    numbers = ",".join(str((7 * i % 11 - 5) / 10) for i in range(math.prod(shape)))
    return f"float[{','.join(map(str, shape))}] {name} = {{{numbers}}}"


HALVED = "<kernel_shape = [2,2], strides = [2,2]>"
LSTM = f"{weight('w', 1, 8, 3)}, {weight('r', 1, 8, 2)}"
CLIMBING = {
    "a waveform": (
        f"g (float[B,1,T] x) => (float[B,2,U] y) <{weight('a', 2, 1, 10)}, {weight('b', 2, 2, 3)},"
        f"{weight('c', 2, 2, 2)}> {{ p = Conv<strides = [5]>(x, a) q = Conv<strides = [2]>(p, b)"
        " r = Conv<strides = [2]>(q, b) y = Conv<strides = [2]>(r, c) }",
        {"B": 3, "T": 128},
    ),
    "a waveform without names": (
        f"g (float[?,1,?] x) => (float[?,2,?] y) <{weight('a', 2, 1, 10)}>"
        "{ y = Conv<strides = [5]>(x, a) }",
        {"x_0": 1, "x_2": 32},
    ),
    "the one image that a product takes": (
        f"g (float[B,1,H,W] x) => (float[B,10] y) <{weight('k', 4, 1, 5, 5)}, {weight('w', 64, 10)}>"
        f"{{ a = Conv(x, k) p = MaxPool{HALVED}(a) f = Flatten(p) y = MatMul(f, w) }}",
        {"B": 3, "H": 12, "W": 12},
    ),
    "a Reshape to fixed sizes": (
        "g (float[B,S,8] x) => (float[B,7,R,8] y) <int64[4] s = {0,7,-1,8}> { y = Reshape(x, s) }",
        {"B": 3, "S": 7},
    ),
    "a pyramid": (
        f"g (float[B,4,H,W] x) => (float[B,4,I,J] y) <float[4] z = {{1,1,2,2}}> {{"
        f"a = MaxPool{HALVED}(x) b = MaxPool{HALVED}(a) c = MaxPool{HALVED}(b)"
        " d = Resize(c,,z) e = Add(d, b) f = Resize(e,,z) h = Add(f, a) i = Resize(h,,z)"
        " y = Add(i, x) }",
        {"B": 3, "H": 8, "W": 8},
    ),
}
INTEGERS = {
    "lengths of sequences": f"g (int64[B,T] i, int64[B] n) => (float[T,1,B,2] y) <{weight('e', 5, 3)},"
    f"{LSTM}> {{ x = Gather(e, i) t = Transpose<perm = [1,0,2]>(x) m = Cast<to = 6>(n)"
    " y, h, c = LSTM<hidden_size = 2>(t, w, r,, m) }",
    "lengths of what is reversed": "g (float[T,B] x, int64[B] n) => (float[T,B] y)"
    "{ y = ReverseSequence(x, n) }",
    "samples of regions": "g (float[B,2,8,8] x, float[R,4] r, int64[R] b) => (float[R,2,2,2] y)"
    "{ y = RoiAlign<output_height = 2, output_width = 2>(x, r, b) }",
    "a shape": "g (float[B,12] x, int64[3] s) => (float[p,q,r] y) { y = Reshape(x, s) }",
    "a shape that the result has": "g (float[B,12] x, int64[3] s) => (float[B,3,4] y)"
    "{ y = Reshape(x, s) }",
    "parts": "g (float[B,5] x, int64[2] s) => (float[B,u] a, float[B,v] b)"
    "{ a, b = Split<axis = 1>(x, s) }",
    "factors": "g (float[B,1,4,4] x, float[4] s) => (float[B,1,p,q] y)"
    '{ y = Resize<mode = "nearest">(x,,s) }',
}


@pytest.mark.parametrize(("graph", "sizes"), CLIMBING.values(), ids=CLIMBING)
def test_sizes_climb_until_the_model_runs(graph: str, sizes: dict[str, int]) -> None:
    model = text.parse(graph, 20)
    report = smelt.verify(model, model)
    assert not any(trial.skipped for trial in report.trials)
    assert report.trials[-1].sizes == sizes
    normal = [str(trial.sizes) for trial in report.trials if trial.inputs == "normal"]
    assert len(set(normal)) == len(normal)
    assert smelt.run(model)


@pytest.mark.parametrize("graph", INTEGERS.values(), ids=INTEGERS)
def test_integers_are_made_up_by_their_use(graph: str) -> None:
    model = text.parse(graph, 20)
    report = smelt.verify(model, model)
    assert not any(trial.skipped for trial in report.trials)


def test_sizes_that_the_graph_rules_out_are_not_run() -> None:
    model = text.parse(CLIMBING["the one image that a product takes"][0], 20)
    demands = demands_of(model)
    fitting = [n for n in range(1, 40) if are_met(demands, {"B": 3, "H": n, "W": n})]
    assert fitting == [12, 13]


def test_who_cannot_make_up_a_shape_says_how_to_give_one() -> None:
    model = text.parse(
        "g (float[B,12] x, int64[2] s) => (float[p,q] y) <int64[2] three = {3,3}>"
        "{ a = Reshape(x, s) b = Shape(a) z = Sub(b, three) y = Reshape(a, z) }",
        20,
    )
    with pytest.raises(InvalidModel) as caught:
        smelt.verify(model, model)
    assert caught.value.fix == "give your own inputs, because 's' holds a shape: --inputs data.npz"


def test_batch_sizes_are_no_part_of_a_length() -> None:
    names = {guess.name for guess in guesses(interface_of(text.parse(CACHED)))}
    assert names == {"S", "P", "T"}
    assert not any("B" in guess.parts for guess in guesses(interface_of(text.parse(CACHED))))
    alone = text.parse("g (float[B,S] x) => (float[B,S] y) { y = Relu(x) }")
    assert not list(guesses(interface_of(alone)))
