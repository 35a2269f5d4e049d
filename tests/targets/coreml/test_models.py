"""Exported models with open sizes: each package agrees with ONNX Runtime at several sizes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from targets.coreml.packages import outside

import smelt
from smelt.frontends.coreml.load import read_core_ml
from smelt.ir.symbolic_dims.dims import symbols_of, unnamed_dims
from smelt.runtime.inputs import random_inputs
from smelt.runtime.rounded_half import round_each_half
from smelt.runtime.runner import open_runner
from smelt.targets.coreml import coreml

FOLDER = Path(__file__).parents[2] / "models"
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
QUICK = ("torchscript_cnn", "dynamo_gpt")
ERRORS = {"fp32": 1e-5, "fp16": 1e-2}
"""The largest error, relative to the largest element of an output."""


def names_of(model) -> set[str]:
    """The names of all open sizes."""
    unnamed = unnamed_dims(model.graph.inputs)
    places = [
        (value, axis, dim) for value in model.graph.inputs for axis, dim in enumerate(value.shape)
    ]
    return {
        name
        for value, axis, dim in places
        if not isinstance(dim, int)
        for name in ([unnamed[value, axis]] if (value, axis) in unnamed else symbols_of(dim))
    }


def error_at(path: Path, read, source, names: set[str], size: int) -> float:
    """The largest error at one size of all open dims."""
    sizes = dict.fromkeys(names, size)
    inputs = random_inputs(smelt.load(path), sizes, seed=size)
    worst = 0.0
    for want, have in zip(source(*inputs), read(*map(outside, inputs)), strict=True):
        expected = outside(want).astype(np.float64)
        assert expected.shape == have.shape
        worst = max(worst, float(np.abs(expected - have).max() / np.abs(expected).max()))
    return worst


@pytest.mark.parametrize("precision", ERRORS)
@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in MODELS],
)
def test_the_package_agrees(name: str, precision: str) -> None:
    path = FOLDER / f"{name}.onnx"
    names = names_of(smelt.load(path))
    dims = dict.fromkeys(names, (1, 6))
    artifact = smelt.compile(path, target=coreml, precision=precision, dims=dims)
    with tempfile.TemporaryDirectory() as folder:
        artifact.save(Path(folder) / "m.mlpackage")
        read = open_runner(round_each_half(read_core_ml(Path(folder) / "m.mlpackage")))
    source = open_runner(path)
    assert max(error_at(path, read, source, names, size) for size in (1, 3, 6)) < ERRORS[precision]
