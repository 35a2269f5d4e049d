"""``--opset`` lowers and ``--ir-version`` chooses the format, for every command that writes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

MODEL = """
    <ir_version: 11, opset_import: ["" : 23]>
    g (float[2,4] x) => (float[A,B] y) <int64[1] a = {1}> { m = ReduceMean(x, a) y = Gelu(m) }
"""


def _versions(path: Path) -> tuple[int, int]:
    model = onnx.load(path)
    return model.opset_import[0].version, model.ir_version


@pytest.mark.parametrize(
    ("options", "versions"),
    [
        ([], (23, 11)),
        (["--opset", "17"], (17, 8)),
        (["--opset", "17", "--ir-version", "10"], (17, 10)),
        (["--opset", "13", "--ir-version", "7"], (13, 7)),
    ],
)
def test_the_file_has_the_requested_versions(smelt, write, tmp_path, options, versions) -> None:
    out = tmp_path / "out.onnx"
    result = smelt("optimize", write(MODEL), "-o", out, "--verify", "each", *options)
    assert result.exit_code == 0, result.stderr
    assert _versions(out) == versions
    assert (f"opset 23 -> {versions[0]}" in result.stderr) == ("--opset" in options)


def test_the_target_onnx_writes_them_too(smelt, write, tmp_path) -> None:
    options = ["--opset", "17", "--ir-version", "9"]
    result = smelt("compile", write(MODEL), "--target", "onnx", "-o", tmp_path / "out", *options)
    assert result.exit_code == 0, result.stderr
    assert _versions(tmp_path / "out" / "model.onnx") == (17, 9)


def test_an_ir_version_below_that_of_the_opset_is_refused(smelt, write, tmp_path) -> None:
    out = tmp_path / "out.onnx"
    result = smelt("optimize", write(MODEL), "-o", out, "--ir-version", "8")
    assert result.exit_code == 4
    assert "E232" in result.stderr
    assert "opset 23 and its element types need IR version 11" in result.stderr
    assert "--opset 18" in result.stderr
    assert not out.exists()
