"""Every target runs dims such as ``2*S`` that stand alone, and refuses sizes that a function was
not traced for."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError

RUNS = [
    ("f32[2*S,3]", [], [2, 6], {5: "2*S is 4 where S=2, not 5"}),
    ("f32[S+2,3]", [], [3, 6], {1: "S + 2 is 1 only where S=-1"}),
    ("f32[3*S+1,3]", [], [4, 10], {5: "3*S + 1 is 4 where S=1, not 5"}),
    ("f32[S,3]", ["S % 2 == 0"], [2, 6], {5: "S=5, and the function was traced with S % 2 == 0"}),
    ("f32[S,3]", ["S % 2 == 0", "S >= 4"], [4, 6], {2: "S >= 4", 5: "S % 2 == 0"}),
    ("f32[S,3]", ["S <= 6"], [1, 6], {7: "S <= 6"}),
]
"""Spec, constraints, leading sizes that run, and those that are refused with the reason."""

TARGETS = {"onnx": {}, "ort": {}, "host": {"engine": "numpy"}}


def rows_but_the_first(x):
    return x[1:] * 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("spec", "constraints", "runs", "refused"), RUNS)
def test_a_run_checks_its_sizes(target, spec, constraints, runs, refused):
    model = smelt.trace(rows_but_the_first, spec, constraints=constraints)
    _check(smelt.compile(model, target=target, **TARGETS[target]), runs, refused)


@pytest.mark.parametrize(("spec", "constraints", "runs", "refused"), RUNS[2:5:2])
def test_c_checks_its_sizes_within_bounds(spec, constraints, runs, refused, tmp_path):
    model = smelt.trace(rows_but_the_first, spec, constraints=constraints)
    artifact = smelt.compile(model, target="c", dims={"S": (1, 8)})
    artifact.save(tmp_path)
    _check(smelt.load_artifact(tmp_path), runs, refused)
    run = artifact.opened()
    run.interface = type(run.interface)(run.interface.inputs, run.interface.outputs)
    for size in refused:  # by the C code alone
        with pytest.raises(UsageError, match="E670"):
            run(np.ones((size, 3), np.float32))


def test_constraints_are_kept_in_files_and_bound(tmp_path):
    model = smelt.trace(lambda x: x * 2, "f32[S,T]", constraints=["S % 4 == 0", "T <= S"])
    smelt.save(model, tmp_path / "model.onnx")
    kept = smelt.load(tmp_path / "model.onnx")
    assert smelt.compile(kept, dims={"S": 8})(np.ones((8, 3), np.float32))
    with pytest.raises(UsageError, match="T=9, and the function was traced with T <= 8"):
        smelt.compile(kept, dims={"S": 8})(np.ones((8, 9), np.float32))
    with pytest.raises(UsageError, match=r"does not take S=6(.|\n)*traced with S % 4 == 0"):
        smelt.compile(kept, dims={"S": 6})
    with pytest.raises(UsageError, match=r"E633 no size within S=1\.\.3"):
        smelt.compile(kept, target="c", dims={"S": (1, 3), "T": 1})


def test_verification_chooses_sizes_that_constraints_take():
    model = smelt.trace(lambda x: x.reshape(-1, 2) * 2, "f32[S,3]", constraints=["S % 4 == 0"])
    result = smelt.verify(model, smelt.optimize(model))
    assert result.ok
    assert "skipped" not in str(result)


def _check(run, runs, refused):
    for size in runs:
        x = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        np.testing.assert_array_equal(run(x)[0], x[1:] * 2)
    for size, why in refused.items():
        with pytest.raises(UsageError, match="E670") as error:
            run(np.ones((size, 3), np.float32))
        assert why in error.value.why
        assert error.value.fix
