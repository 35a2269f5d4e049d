"""A saved folder runs where it is opened, from its files alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt import operators
from smelt.errors import UsageError
from smelt.ir import text
from smelt.operators import registry
from smelt.operators.declare import Operator, Result
from smelt.targets.saved import open_saved

WEIGHTS = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)


def dense(x: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ WEIGHTS) + WEIGHTS[0]


@pytest.fixture
def reopened(tmp_path):
    """Compile, save and open a model; return the artifact, and the program that was opened."""

    def reopen(source, *specs, **options):
        artifact = smelt.compile(source, *specs, target="host", **options)
        artifact.save(tmp_path)
        saved = open_saved(tmp_path)
        assert saved.target == "host"
        return artifact, saved

    return reopen


@pytest.mark.parametrize("rows", [4, "B"])
def test_weights_and_sizes(reopened, rows) -> None:
    """With static and with open sizes; the weights are in a file of their own."""
    artifact, saved = reopened(dense, f"f32[{rows},300]")
    x = np.random.default_rng(1).normal(size=(4, 300)).astype(np.float32)
    np.testing.assert_array_equal(saved.load()(x)[0], artifact(x)[0])
    assert len(artifact.files["program.onnx"]) < 10_000 < len(artifact.files["program.onnx.data"])
    assert ("memory.txt" in artifact.files) is (rows == 4)


def test_a_default_may_be_left_out(reopened) -> None:
    source = '<ir_version: 4, opset_import: ["" : 13]> g (float[2] x, float[2] d) => (float[2] y) <float[2] d = {1, 2}> { y = Add(x, d) }'
    artifact, saved = reopened(text.parse(source))
    x = np.ones(2, np.float32)
    run = saved.load()
    for given in (None, np.full(2, 5, np.float32)):
        np.testing.assert_array_equal(run(x, given)[0], artifact(x, given)[0])
    assert [port.default is None for port in saved.interface.inputs] == [True, False]


def test_declared_operators_of_installed_packages(reopened) -> None:
    """An operator of an installed package needs no body: the reader of the folder has the package."""
    source = "g (float[3,3] a) => (float[3,3] t, float[3,3] z) { t, z = smelt.Schur(a) }"
    artifact, saved = reopened(text.parse(source))
    a = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    for got, want in zip(saved.load()(a), artifact(a), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_operator_of_this_process_alone_is_refused_but_runs(tmp_path) -> None:
    """Another process would not have the operator; with a body, the file would contain its meaning."""
    backwards = Operator(
        domain="example",
        name="Backwards",
        inputs=("x",),
        outputs=("y",),
        infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),
        reference=lambda inputs, attributes: (inputs[0][::-1],),
    )
    with registry.OPERATORS.refilled():
        operators.register(backwards)
        model = text.parse("g (float[2] x) => (float[2] y) { y = example.Backwards(x) }")
        artifact = smelt.compile(model, target="host")
        np.testing.assert_array_equal(artifact(np.arange(2, dtype=np.float32))[0], [1, 0])
        with pytest.raises(smelt.SmeltError, match=r"E203.*Backwards"):
            artifact.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_types_that_numpy_lacks(reopened) -> None:
    source = "g (bfloat16[3] x) => (bfloat16[3] y) <bfloat16[3] w = {1, 2, 3}> { y = Mul(x, w) }"
    artifact, saved = reopened(text.parse(source))
    x = np.array([1, 2, 3], ml_dtypes.bfloat16)
    (got,) = saved.load()(x)
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, artifact(x)[0])


def test_random_indices_stay_in_range(reopened) -> None:
    source = "g (int64[3] i) => (float[3] y) <float[5] t = {1,2,3,4,5}> { y = Gather(t, i) }"
    _, saved = reopened(text.parse(source))
    assert saved.ranges == {"i": (0, 4)}


def test_in_a_process_of_its_own(reopened, tmp_path) -> None:
    artifact, _ = reopened(dense, "f32[4,300]")
    x = np.ones((4, 300), np.float32)
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy as np; from smelt.targets.saved import open_saved\n"
        "(y,) = open_saved(sys.argv[1]).load()(np.load(sys.argv[1] + '/x.npy'))\n"
        "np.save(sys.argv[1] + '/y.npy', y); assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), artifact(x)[0])


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("program.onnx", None, "E616"),
        ("program.onnx", b"", "E302"),
        ("program.onnx.data", b"short", "E314"),
    ],
)
def test_a_damaged_folder_is_refused(reopened, tmp_path, file, content, code) -> None:
    reopened(dense, "f32[4,300]")
    path = tmp_path / file
    path.write_bytes(content) if content is not None else path.unlink()
    with pytest.raises(smelt.SmeltError) as caught:
        open_saved(tmp_path)
    assert caught.value.code == code


def test_a_compile_does_not_encode_the_model() -> None:
    artifact = smelt.compile(dense, "f32[4,300]", target="host")
    artifact(np.ones((4, 300), np.float32))
    assert "_encoded" not in vars(artifact.files)


@pytest.mark.parametrize("mark", ["garbage", "", '{"schema": "smelt.host/99"}'])
def test_a_damaged_mark_is_named(tmp_path: Path, mark: str) -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    smelt.compile(model, target="host").save(tmp_path)
    (tmp_path / "host.json").write_text(mark)
    with pytest.raises(UsageError, match=r"E616 'host.json' .* is damaged"):
        open_saved(tmp_path)


def test_a_machine_without_a_compiler_opens_a_folder(reopened, monkeypatch) -> None:
    monkeypatch.setenv("SMELT_CACHE", "/nowhere")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "no-such-compiler")
    x = np.ones((2, 300), np.float32)
    source = "g (float[B,300] x) => (float[B,300] y) { y = Relu(x) }"
    _, saved = reopened(text.parse(source), engine="auto")
    for _ in range(3):
        np.testing.assert_array_equal(saved(x)[0], x)
