"""Reproducers of what smelt does wrong: self-contained, replayed by one command, without weights."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from smelt.check import reproducer
from smelt.cli.replay import reproducer_of

WEIGHTS = np.random.default_rng(7).normal(size=(8, 8)).astype(np.float32)


@pytest.fixture
def model(tmp_path):
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N,8] x) => (float[N,8] y) { y = MatMul(x, w) }'
    )
    proto.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    path = tmp_path / "mine.onnx"
    onnx.save(proto, path)
    return path


@pytest.fixture(autouse=True)
def _folders_of_the_test(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def folder_of(*arguments):
    return Path(reproducer_of([str(item) for item in arguments], ZeroDivisionError("surprise")))


def weights_in(folder):
    return numpy_helper.to_array(onnx.load(folder / "model.onnx").graph.initializer[0])


def test_weights_are_random_unless_asked_for(model):
    found = weights_in(folder_of("optimize", model, "-o", "out.onnx"))
    assert found.shape == WEIGHTS.shape
    assert not np.isin(found, WEIGHTS).any()
    token = reproducer.real_weights.set(True)
    try:
        np.testing.assert_array_equal(weights_in(folder_of("optimize", model)), WEIGHTS)
    finally:
        reproducer.real_weights.reset(token)


def test_options_that_have_an_equals_sign_write_into_the_folder_and_bring_their_pipeline(
    model, tmp_path
):
    page, passes = tmp_path / "page.html", tmp_path / "passes.txt"
    page.write_text("as it was")
    passes.write_text("cleanup")
    folder = folder_of("optimize", f"--report={page}", f"--pipeline=@{passes}", model, "--output=-")
    script = (folder / "repro.sh").read_text()
    assert "--report=out.html --pipeline=@pipeline.txt model.onnx --output=-" in script
    assert (folder / "pipeline.txt").read_text() == "cleanup"


def test_the_model_that_is_read_is_taken_along_and_no_file_of_the_user_is_written(model, tmp_path):
    old = tmp_path / "old.onnx"
    old.write_bytes(b"as it was")
    folder = folder_of("optimize", model, "-o", old)
    assert "optimize model.onnx -o out.onnx" in (folder / "repro.sh").read_text()
    assert run(folder).returncode == 0
    assert (folder / "out.onnx").is_file()
    assert old.read_bytes() == b"as it was"


def test_the_file_behind_a_long_option_is_renamed_and_a_word_with_an_equals_sign_is_kept(model):
    folder = folder_of("optimize", model, "--output", "old.onnx", "--dim", "output=3")
    written = (folder / "repro.sh").read_text()
    assert "optimize model.onnx --output out.onnx --dim output=3" in written


def test_a_function_comes_with_its_module(tmp_path, monkeypatch):
    (tmp_path / "userfn.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import userfn  # noqa: F401

    old = tmp_path / "out.onnx"
    old.write_bytes(b"as it was")
    folder = folder_of("convert", "userfn:double", "--input", "f32[2]", "-o", old)
    (tmp_path / "userfn.py").unlink()
    assert not (folder / "model.onnx").exists()
    assert run(folder).returncode == 0
    assert old.read_bytes() == b"as it was"
    del sys.modules["userfn"]


def test_the_file_of_a_pipeline_is_taken_along(model, tmp_path):
    (tmp_path / "passes.txt").write_text("noop-elimination\n")
    folder = folder_of("optimize", model, "-o", "out.onnx", "--pipeline", "@passes.txt")
    assert (folder / "pipeline.txt").read_text() == "noop-elimination\n"
    assert run(folder).returncode == 0


def test_reproducers_omit_files_that_are_no_model(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\xff\xff secret weights")
    assert not (folder_of("inspect", broken) / "model.onnx").exists()


def run(folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["sh", folder / "repro.sh"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PATH": path},
    )
