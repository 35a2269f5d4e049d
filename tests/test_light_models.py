"""The architectures that ship inside the onnx package keep their outputs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from sampling import is_tried

import smelt
from smelt.passes.registry import passes
from smelt.runtime.runner import open_runner

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
QUICK = ("squeezenet", "shufflenet", "inception_v1")
SLOW = ("bvlc_alexnet", "densenet121", "inception_v2", "resnet50", "vgg19", "zfnet512")
FROZEN = "freeze-defaults,default"
ONE_OF = 4
"""Of the passes alone so many are tried once on each model in CI; both pipelines have all of them."""


def outputs(name: str, model: onnx.ModelProto | Path) -> np.ndarray:
    runner = open_runner(model, "onnxruntime")
    inputs = [
        None if port.default is not None else _image(port.shape) for port in runner.interface.inputs
    ]
    [result] = runner(*inputs)
    return result


def _image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@cache
def source(name: str) -> tuple[onnx.ModelProto, np.ndarray]:
    """The model and its output."""
    path = LIGHT / f"light_{name}.onnx"
    return onnx.load(path), outputs(name, path)


@cache
def written(name: str, pipeline: str) -> bytes:
    """The model after the passes before the one in question, which may be none."""
    model, expected = source(name)
    result = smelt.optimize(model, pipeline=pipeline)
    np.testing.assert_allclose(expected, outputs(name, result), rtol=1e-4, atol=1e-6)
    return result.SerializeToString(deterministic=True)


def check(name: str, pipeline: str) -> None:
    """A pass that leaves the model as it was need not be run."""
    model, expected = source(name)
    optimized = smelt.optimize(model, pipeline=pipeline)
    before = written(name, pipeline.rpartition(",")[0])
    if optimized.SerializeToString(deterministic=True) != before:
        result = outputs(name, optimized)
        np.testing.assert_allclose(expected, result, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("pipeline", ["default", FROZEN])
def test_quick_ones(name: str, pipeline: str) -> None:
    check(name, pipeline)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("pipeline", ["default", FROZEN])
def test_the_others(name: str, pipeline: str) -> None:
    check(name, pipeline)


@pytest.mark.parametrize("pass_", [p.spelling for p in passes().values() if p.default])
def test_each_pass_alone(pass_: str) -> None:
    if is_tried(f"shufflenet {pass_}", ONE_OF):
        check("shufflenet", pass_)
    if is_tried(f"squeezenet {pass_}", ONE_OF):
        check("squeezenet", f"freeze-defaults,{pass_}")


@pytest.mark.slow
@pytest.mark.parametrize("pass_", [p.spelling for p in passes().values() if p.default])
def test_each_pass_alone_on_the_others(pass_: str) -> None:
    for name in (*QUICK, *SLOW):
        check(name, f"freeze-defaults,{pass_}")


def test_the_outputs_that_come_with_the_models() -> None:
    expected = onnx.TensorProto()
    expected.ParseFromString((LIGHT / "light_squeezenet_output_0.pb").read_bytes())
    assert (
        numpy_helper.to_array(expected).shape
        == outputs("squeezenet", LIGHT / "light_squeezenet.onnx").shape
    )
