"""``smelt compile --weights int4 --within 5%``: weights get fewer bits as far as an error allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import smelt as package
from smelt.ir import text


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    source = text.parse("g (float[B,64] x, float[64,48] w) => (float[B,48] y) { y = MatMul(x, w) }")
    weight = source.graph.inputs.pop()
    weight.const_value = ir.tensor(rng.normal(size=(64, 48)).astype(np.float32), name="w")
    source.graph.register_initializer(weight)
    package.save(source, tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=rng.normal(size=(6, 64)).astype(np.float32))
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("target", ["ort", "onnx"])
def test_the_weights_have_the_type_and_the_error_is_told(
    smelt: Any, model: Path, tmp_path: Path, target: str
) -> None:
    out = tmp_path / "out"
    arguments = ("--weights", "int4", "--option", "block=16", "--within", "20%")
    result = smelt(
        *("compile", model, "--target", target, *arguments, "-o", out),
        *("--inputs", tmp_path / "x.npz", "--verify", "final"),
    )
    assert result.exit_code == 0, result.stderr
    assert "1 weights in int4; calibrated on 3 samples" in result.stderr
    assert "within 20 % (relative)" in result.stderr
    weights = package.load(out / "model.onnx").graph.initializers.values()
    assert ir.DataType.INT4 in {value.dtype for value in weights}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--weights", "int4", "--within", "0.001%"), "E677"),
        (("--within", "1%"), "E637"),
        (("--weights", "int4", "--option", "block=5", "--within", "20%"), "E679"),
    ],
)
def test_wrong_use(smelt: Any, model: Path, tmp_path: Path, arguments: Any, code: str) -> None:
    result = smelt("compile", model, "--target", "ort", *arguments, "-o", tmp_path / "out")
    assert result.exit_code != 0
    assert code in result.stderr
