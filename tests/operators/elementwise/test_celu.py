"""Celu with an alpha of 0, too: what ONNX's formula and ONNX Runtime give, on all targets."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

X = np.array([-2, -0.0, 0, 1, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("alpha", [0.0, -0.0, 0.5, -1.5])
@pytest.mark.parametrize("target", ["host", "c"])
def test_as_onnx_runtime(target: str, alpha: float) -> None:
    source = text.parse(f"g (float[7] x) => (float[7] y) {{ y = Celu<alpha={alpha}>(x) }}")
    (expected,), (found,) = OnnxRuntime(source)(X), smelt.compile(source, target=target)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
