"""Shrink of integers: limit and bias are floats, and results are truncated."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

MODEL = """g ({0}[N] x) => ({0}[N] y) {{ y = Shrink<bias={1}, lambd={2}>(x) }}"""
TYPES = {"uint8": np.uint8, "int8": np.int8, "int32": np.int32, "float": np.float32}


@pytest.mark.parametrize("numbers", [(1.5, 1.5), (-4.5, 5.0), (0.25, 2.5)])
@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("kind", TYPES)
def test_results_are_those_of_onnx_runtime(
    kind: str, target: str, numbers: tuple[float, float]
) -> None:
    source = MODEL.format(kind, *numbers)
    bounds = {"dims": {"N": (1, 64)}} if target == "c" else {}
    run = smelt.compile(text.parse(source, 19), target=target, **bounds)
    x = np.arange(16).astype(TYPES[kind]) - (0 if kind == "uint8" else TYPES[kind](8))
    (want,) = OnnxRuntime(text.parse(source, 19))(x)
    np.testing.assert_array_equal(run(x)[0], want)
