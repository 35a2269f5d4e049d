"""Inputs with defaults may be left out of a call: as None, or at the end of the inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text

MODEL = text.parse(
    """g (float[2,3] x, float[3] w, float[3] b) => (float[2,3] y)
    <float[3] w = {1, 2, 3}, float[3] b = {4, 5, 6}> { t = Mul(x, w) y = Add(t, b) }"""
)
X = np.ones((2, 3), np.float32)
TARGETS = ["onnx", "ort", "host", "c"]


@pytest.mark.parametrize("target", TARGETS)
def test_the_last_inputs_may_be_left_out(target: str) -> None:
    artifact = smelt.compile(MODEL, target=target)
    assert artifact(X)[0][0].tolist() == [5, 7, 9]
    assert artifact(X, 2 * X[0])[0][0].tolist() == [6, 7, 8]
    assert artifact(X, None, X[0])[0][0].tolist() == [2, 3, 4]
    assert artifact(X, X[0], X[0])[0][0].tolist() == [2, 2, 2]


def test_so_may_those_of_a_saved_artifact(tmp_path: Path) -> None:
    smelt.compile(MODEL, target="host").save(tmp_path)
    assert smelt.load_artifact(tmp_path)(X)[0][0].tolist() == [5, 7, 9]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("given", [(), (None,), (X, X[0], X[0], X)], ids=["none", "None", "four"])
def test_inputs_without_default_may_not_be_left_out(
    target: str, given: tuple[np.ndarray, ...]
) -> None:
    with pytest.raises(UsageError, match=r"E632|E671"):
        smelt.compile(MODEL, target=target)(*given)


@pytest.mark.parametrize("target", TARGETS)
def test_defaults_may_be_in_front_of_what_has_none(target: str) -> None:
    """As MATLAB lists the weights of a network before its image."""
    front = text.parse(
        "g (float[3] w, float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }"
    )
    artifact = smelt.compile(front, target=target)
    assert artifact(X[0])[0].tolist() == [1, 2, 3]
    assert artifact(None, X[0])[0].tolist() == [1, 2, 3]
    assert artifact(X[0], 2 * X[0])[0].tolist() == [2, 2, 2]


def test_who_compiles_is_told_of_defaults() -> None:
    with pytest.warns(UserWarning, match="2 of 3 inputs have a default .* as constants: 'w', 'b';"):
        smelt.optimize(MODEL)


def test_who_freezes_them_is_not(recwarn: pytest.WarningsRecorder) -> None:
    frozen = smelt.optimize(MODEL, pipeline="freeze-defaults,default")
    assert [value.name for value in frozen.graph.inputs] == ["x"]
    assert not recwarn.list
