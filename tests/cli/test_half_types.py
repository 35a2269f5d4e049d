"""The options --fp16, --bf16, --keep and --io of commands that write ONNX models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import smelt
from smelt.cli.main import app
from smelt.ir import text

GRAPH = """g (float[N,4] x) => (float[N,4] y) <float[4,4] w = {0.1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    a = MatMul(x, w) y = Softmax(a) }"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.onnx"
    smelt.save(text.parse(GRAPH, 18), path)
    return str(path)


def smelt_command(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_the_report_line_tells_the_error_and_what_stayed(model: str, tmp_path: Path) -> None:
    out = str(tmp_path / "half.onnx")
    status, _, said = smelt_command("optimize", model, "--fp16", "-o", out)
    assert status == 0
    assert "float16: 1 of 2 nodes, 2 casts, error 0." in said
    assert "on random inputs" in said
    assert "in float32: 1 for a softmax (Softmax)" in said
    assert {tensor.data_type for tensor in onnx.load(out).graph.initializer} == {
        onnx.TensorProto.FLOAT16
    }


def test_inputs_of_the_user_and_json(model: str, tmp_path: Path) -> None:
    data, out = str(tmp_path / "x.npz"), str(tmp_path / "half.onnx")
    np.savez(data, x=np.ones((2, 4), np.float32))
    arguments = ("--fp16", "--io", "fp16", "--inputs", data, "--json", "-o", out)
    status, printed, _ = smelt_command("optimize", model, *arguments)
    assert status == 0
    half = json.loads(printed)["half"]
    assert (half["format"], half["samples"], half["random_inputs"]) == ("float16", 1, False)
    ports = (*onnx.load(out).graph.input, *onnx.load(out).graph.output)
    assert {port.type.tensor_type.elem_type for port in ports} == {onnx.TensorProto.FLOAT16}


@pytest.mark.parametrize("verify", ["off", "final"])
def test_compile_takes_the_options(model: str, tmp_path: Path, verify: str) -> None:
    data = str(tmp_path / "x.npz")
    np.savez(data, x=np.ones((2, 4), np.float32))
    arguments = ("--target", "ort", "--fp16", "--verify", verify, "--inputs", data)
    status, _, said = smelt_command("compile", model, *arguments, "-o", str(tmp_path / "out"))
    assert status == 0
    assert "float16: 1 of 2 nodes" in said
    assert "over 1 runs\n" in said


WRONG = {
    "both types": (["--fp16", "--bf16"], "E688"),
    "ports without a type": (["--io", "fp16"], "E688"),
    "nodes without a type": (["--keep", "Softmax"], "E688"),
    "ports of the other type": (["--bf16", "--io", "fp16"], "E688"),
    "an unknown operator": (["--fp16", "--keep", "Sotfmax"], "E603"),
    "another target": (["--fp16", "--target", "c"], "E689"),
}


@pytest.mark.parametrize(("arguments", "code"), WRONG.values(), ids=WRONG)
def test_wrong_use(model: str, tmp_path: Path, arguments: list[str], code: str) -> None:
    command = "compile" if "--target" in arguments else "optimize"
    status, _, said = smelt_command(command, model, "-o", str(tmp_path / "out"), *arguments)
    assert status != 0
    assert said.startswith(code)
