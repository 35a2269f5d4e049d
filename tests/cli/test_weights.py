"""``--weights``: a checkpoint, or the type that products read their weights in.

How a checkpoint fills them in ``convert`` is in ``test_convert.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import smelt as package
from smelt.cli.weights import Weights
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
    nodes = package.load(out / "model.onnx").graph
    assert [node.op_type for node in nodes] == ["MatMulNBits"]
    assert model.stat().st_size > 5 * (out / "model.onnx").stat().st_size

    shown = smelt("verify", model, out)
    assert shown.exit_code == 0
    assert "of the mean magnitude (weights of int4, 32 to a scale)" in shown.stdout
    assert smelt("verify", model, out, "--rtol", "1e-6").exit_code == 1


def test_a_target_without_such_weights_refuses(smelt: Any, model: Path, tmp_path: Path) -> None:
    result = smelt("compile", model, "--target", "onnx", "--weights", "int8", "-o", tmp_path / "o")
    assert result.exit_code != 0
    assert "E660" in result.stderr


@pytest.mark.parametrize(
    ("items", "checkpoint", "stored"),
    [
        (None, None, {}),
        (["int8"], None, {"weights": "int8"}),
        (["w.npz", "int4"], "w.npz", {"weights": "int4"}),
        (["./int4"], "./int4", {}),
    ],
)
def test_a_type_and_a_checkpoint_are_told_apart(
    items: list[str] | None, checkpoint: str | None, stored: dict[str, str]
) -> None:
    given = Weights(items)
    assert given.tracing().get("checkpoint") == checkpoint
    assert given.stored() == stored


@pytest.mark.parametrize("items", [["int4", "int8"], ["a.npz", "b.npz"], ["int5"], ["fp16"]])
def test_other_values_of_the_option_are_refused(items: list[str]) -> None:
    given = Weights(items)
    for ask in (given.tracing, given.stored):
        with pytest.raises(SmeltError) as caught:
            ask()
        assert caught.value.code == "E636"


def test_a_compile_fills_weights_as_a_conversion_does(
    smelt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "import jax",
        "def layer(p, x):",
        "    return x @ p",
        "layer = jax.tree_util.Partial(layer, jax.ShapeDtypeStruct((4, 2), 'float32'))",
    ]
    (tmp_path / "to_compile.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    kernel = np.arange(8, dtype=np.float64).reshape(4, 2)
    np.savez(tmp_path / "w.npz", gamma=kernel, step=np.zeros(1))
    given = ("compile", "to_compile:layer", "--input", "f32[B,4]", "-o", tmp_path / "out")
    filling = ("--weights", tmp_path / "w.npz", "--weight-name", "p=gamma", "--extra-weights")
    assert "--cast-weights" in smelt(*given, *filling).stderr
    result = smelt(*given, *filling, "--cast-weights", "--verify", "final")
    assert result.exit_code == 0, result.stderr
    assert "verified" in result.stderr
    compiled = package.load(tmp_path / "out" / "model.onnx")
    (weight,) = compiled.graph.initializers.values()
    np.testing.assert_array_equal(weight.const_value.numpy(), kernel.astype(np.float32))
    assert "E637" in smelt(*given, "--cast-weights").stderr
    of_model = smelt("compile", tmp_path / "out" / "model.onnx", *filling[:2], *given[-2:])
    assert "E608 input specs or a checkpoint are given for an ONNX model" in of_model.stderr


def test_products_that_keep_their_weights_are_told(smelt: Any, write: Any, tmp_path: Path) -> None:
    small = write(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2,64] x) => (float[2,8] y)'
        f" <float[64,8] w = {{{', '.join(['0.5'] * 512)}}}> {{ y = MatMul(x, w) }}"
    )
    options = ("--target", "ort", "--weights", "int4", "-o", tmp_path / "out")
    assert "weights:int4: 1 left as they were" in smelt("compile", small, *options).stderr
