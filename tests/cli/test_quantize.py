"""``smelt quantize``: a file within the error, what is printed, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from smelt.frontends.onnx import to_proto
from smelt.ir import text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model = to_proto(
        text.parse("g (float[B,16] x, float[16,64] w) => (float[B,64] y) { y = MatMul(x, w) }")
    )
    rng = np.random.default_rng(0)
    weight = onnx.numpy_helper.from_array(rng.normal(size=(16, 64)).astype(np.float32), "w")
    model.graph.initializer.append(weight)
    del model.graph.input[1]
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(20, 16)).astype(np.float32))
    np.save(tmp_path / "labels.npy", np.arange(20) % 64)
    (tmp_path / "quality.py").write_text(
        "import numpy as np\n"
        "def off(a, b): return max(abs(x['y'] - y['y']).max() for x, y in zip(a, b))\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        ("--within", "2%"),
        ("--within", "60", "--metric", "top1", "--labels", "labels.npy"),
        ("--within", "0.5", "--metric", "quality:off"),
        ("--within", "2%", "--gain", "bytes", "--activations", "dynamic"),
        ("--within", "2%", "--gain", "cycles", "--option", "cpu=cortex-m4"),
        ("--within", "2%", "--resume", "search.jsonl"),
    ],
)
def test_the_file_is_written_within_the_error(
    smelt: Any, document: Any, folder: Path, options: tuple[str, ...]
) -> None:
    arguments = ("--calibrate", "data.npz", "-o", "small.onnx", *options, "--json")
    told = document(smelt("quantize", "model.onnx", *arguments))
    assert told["error"] <= told["within"]
    assert told["bytes"][1] == (folder / "small.onnx").stat().st_size
    assert told["chosen"][0]["nodes"] == ["y"]
    assert told["curve"]


def test_people_are_told_the_trade(smelt: Any, folder: Path) -> None:
    done = smelt(
        "quantize", "model.onnx", "--calibrate", "data.npz", "--within", "2%", "-o", "s.onnx"
    )
    assert "bytes saved" in done.stderr
    assert "within 2 % (relative)" in done.stderr
    assert "held out" in done.stderr


REFUSED = {
    "E683": ["--activations", "static"],
    "E686": ["--metric", "mse"],
    "E685": ["--metric", "cosine", "--labels", "labels.npy", "--calibrate", "data.npz"],
    "E617": ["--calibrate", "missing.npz"],
    "E636": ["--within", "much"],
    "E677": ["--within", "0.000001%"],
    "E614": ["-o", "no/such/folder.onnx"],
}


@pytest.mark.parametrize(("code", "arguments"), REFUSED.items(), ids=REFUSED)
def test_refuses(smelt: Any, folder: Path, code: str, arguments: list[str]) -> None:
    done = smelt("quantize", "model.onnx", "-o", "small.onnx", *arguments, "--json")
    assert json.loads(done.stdout)["error"]["code"] == code
    assert done.exit_code == 2
    assert not (folder / "small.onnx").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gain", "cycles"), "a gain in cycles needs a CPU"),
        (("--gain", "cycles", "--option", "cpu=z80"), "cpu=z80 are not known"),
        (("--option", "cpu=cortex-m4"), "has no effect"),
        (("--gain", "cycles", "--option", "cpu=cortex-m4", "--weights", "int4"), "has no effect"),
        (("--format", "qoperator", "--weights", "nf4"), "--format qoperator has no effect"),
        (("--option", "arena=64"), "--option arena has no effect"),
    ],
)
def test_options_of_the_gain_that_do_not_fit(
    smelt: Any, folder: Path, options: tuple[str, ...], words: str
) -> None:
    done = smelt("quantize", "model.onnx", "--calibrate", "data.npz", "-o", "s.onnx", *options)
    assert done.exit_code == 2
    assert "E679" in done.stderr
    assert words in done.stderr
    assert not (folder / "s.onnx").exists()
