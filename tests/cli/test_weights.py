"""``--weights``: a checkpoint, or the type that products read their weights in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import smelt as package
from smelt.cli.tracing import parse_weights
from smelt.errors import SmeltError
from smelt.ir import text


@pytest.fixture
def model(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(0).standard_normal((300, 256)).astype(np.float32)
    source = text.parse(
        "g (float[B,300] x, float[300,256] w) => (float[B,256] y) { y = MatMul(x, w) }"
    )
    weight = source.graph.inputs.pop()
    weight.const_value = ir.tensor(numbers, name="w")
    source.graph.register_initializer(weight)
    package.save(source, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_products_read_weights_of_the_type(
    smelt: Any, model: Path, tmp_path: Path, document: Any
) -> None:
    out = tmp_path / "out"
    result = smelt(
        *("compile", model, "--target", "ort", "--weights", "int4", "-o", out, "--verify", "final"),
        "--json",
    )
    assert result.exit_code == 0, result.stderr
    facts = document(result)
    assert facts["approximation"] == "weights of int4, 32 to a scale"
    assert 0.01 < facts["verification"]["mean_rel"] < 0.2
    (node,) = package.load(out / "model.onnx").graph
    assert node.op_type == "MatMulNBits"
    assert model.stat().st_size > 5 * (out / "model.onnx").stat().st_size

    shown = smelt("verify", model, out)
    assert shown.exit_code == 0
    assert "of the mean magnitude (weights of int4, 32 to a scale)" in shown.stdout
    assert smelt("verify", model, out, "--rtol", "1e-6").exit_code == 1


def test_a_target_without_such_weights_refuses(smelt: Any, model: Path, tmp_path: Path) -> None:
    result = smelt("compile", model, "--target", "onnx", "--weights", "int8", "-o", tmp_path / "o")
    assert result.exit_code != 0
    assert "E660" in result.stderr


def test_a_type_and_a_checkpoint_are_told_apart() -> None:
    assert parse_weights(None) == (None, {})
    assert parse_weights(["int8"]) == (None, {"weights": "int8"})
    assert parse_weights(["w.npz", "int4"]) == ("w.npz", {"weights": "int4"})
    assert parse_weights(["./int4"]) == ("./int4", {})


@pytest.mark.parametrize("items", [["int4", "int8"], ["a.npz", "b.npz"], ["int5"], ["fp16"]])
def test_what_is_neither_is_refused(items: list[str]) -> None:
    with pytest.raises(SmeltError) as caught:
        parse_weights(items)
    assert caught.value.code == "E636"


def test_products_that_keep_their_weights_are_told(smelt: Any, write: Any, tmp_path: Path) -> None:
    small = write(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2,64] x) => (float[2,8] y)'
        f" <float[64,8] w = {{{', '.join(['0.5'] * 512)}}}> {{ y = MatMul(x, w) }}"
    )
    options = ("--target", "ort", "--weights", "int4", "-o", tmp_path / "out")
    assert "weights:int4: 1 left as they were" in smelt("compile", small, *options).stderr
