"""The conformance suite, and artifacts that run here through the reader."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from targets.coreml.packages import written
from targets.coreml.test_target import CACHE, DENSE

import smelt
from smelt.conformance import CASES, conform
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.targets.coreml import coreml
from smelt.targets.coreml.options import Options


@dataclass(frozen=True)
class Single(Options):
    """The options with float32 as the default, whose errors the suite allows in every case."""

    precision: str = "fp32"


SINGLE = replace(coreml, options=Single)
REFUSED = {"a symbolic batch", "an empty tensor", "an operator nobody has"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_target_conforms(case):
    assert conform(SINGLE, case) == ("refused" if case.name in REFUSED else "agrees")


TINY = {"a network with every category", "more than a scratchpad holds"}
"""Cases with results of 1e-7, or with more roundings in float16 than the suite allows."""
OVERFLOWING = {"a dense layer", "a convolution", "a value read twice and returned"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_float16_conforms_or_its_overflow_is_noticed(case):
    if case.name in OVERFLOWING:
        with pytest.raises(SmeltError, match=r"far inputs.*got -?inf"):
            conform(coreml, case)
    elif case.name not in REFUSED | TINY:
        assert conform(coreml, case) == "agrees"


def test_an_artifact_takes_and_returns_the_types_of_the_model():
    model = "g (int64[2] i, bool b, float16[2] h) => (int64[2] j, bool c, float16[2] k) { j = Neg(i) c = Not(b) k = Exp(h) }"
    j, c, k = written(model)(np.array([1, -2]), np.array(True), np.zeros(2, np.float16))
    assert (j.dtype, j.tolist()) == (np.int64, [-1, 2])
    assert (c.dtype, c.shape, bool(c)) == (np.bool_, (), False)
    assert (k.dtype, k.tolist()) == (np.float16, [1, 1])


def test_an_artifact_of_several_functions_chooses_by_shape():
    artifact = written(DENSE, dims={"B": (1, 8)}, sizes="B=1,4", functions="fixed", ios=18)
    for size in (1, 4):
        (result,) = artifact(np.zeros((size, 8), np.float32))
        np.testing.assert_allclose(result, np.full((size, 4), 0.25), 1e-6)
    with pytest.raises(SmeltError, match="no function of the package takes inputs of the shapes"):
        artifact(np.zeros((2, 8), np.float32))


def test_an_artifact_with_a_state_takes_and_returns_it():
    artifact = written(CACHE, states="past=present", ios=18)
    past = np.arange(8, dtype=np.float32).reshape(4, 2)
    present, total = artifact(np.array([[50, 60]], np.float32), past, np.array([[-1]]))
    assert present.tolist() == [[0, 1], [2, 3], [4, 5], [50, 60]]
    assert total == 125


def test_a_saved_package_is_opened(tmp_path):
    artifact = smelt.compile(
        text.parse("g (float[2] x) => (float[2] y) { y = Exp(x) }"), target=coreml, precision="fp32"
    )
    artifact.save(tmp_path / "m.mlpackage")
    assert coreml.open(tmp_path) is not None
    (result,) = coreml.open(tmp_path / "m.mlpackage")(np.zeros(2, np.float32))
    assert result.tolist() == [1, 1]
    assert coreml.open(tmp_path / "m.mlpackage" / "Data") is None
