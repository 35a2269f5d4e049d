"""Compiled programs return the numbers and errors of NumPy; NumPy runs those that cannot be
compiled.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text
from smelt.runtime.jit import build, toolchain
from smelt.targets.base import Artifact
from smelt.targets.host.saved import open_folder

LOOKUP = """g (float[V,8] table, int64[N] i, float[8,6] w) => (float[N,6] y, float[6,N] z) {
    x = Gather<axis=0>(table, i)
    a = MatMul(x, w)
    y = Tanh(a)
    z = Transpose(y)
}"""
TABLE = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((8, 6)).astype(np.float32)
INDEX = np.array([0, 4, -1, 2])
EXPECTED = np.tanh(TABLE[INDEX] @ WEIGHTS)


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lookup(compile_host) -> Artifact:
    return compile_host(LOOKUP)


def is_compiled(artifact: Artifact) -> bool:
    return artifact.opened()._fast is not None


def check(artifact: Artifact) -> None:
    y, z = artifact(TABLE, INDEX, WEIGHTS)
    np.testing.assert_allclose(y, EXPECTED, rtol=1e-5)
    np.testing.assert_allclose(z, EXPECTED.T, rtol=1e-5)


def test_results_are_those_of_numpy(lookup) -> None:
    check(lookup)
    assert is_compiled(lookup)
    wide = np.asfortranarray(np.concatenate([TABLE, TABLE], 1))[:, :8]
    np.testing.assert_allclose(lookup(wide, INDEX, WEIGHTS)[0], EXPECTED, rtol=1e-5)


def test_an_index_out_of_range_raises(lookup) -> None:
    check(lookup)
    with pytest.raises(InvalidModel, match="out of range") as caught:
        lookup(TABLE, np.array([0, 1, 2, 5]), WEIGHTS)
    assert caught.value.code == "E321"
    check(lookup)


@pytest.mark.parametrize(
    ("index", "code"), [(INDEX.astype(np.int32), "E671"), (INDEX[None], "E670")]
)
def test_arrays_that_do_not_fit_are_refused(lookup, index: np.ndarray, code: str) -> None:
    check(lookup)
    with pytest.raises(UsageError) as caught:
        lookup(TABLE, index, WEIGHTS)
    assert caught.value.code == code


def test_concurrent_calls_get_their_own_results(lookup) -> None:
    inputs = [(TABLE * k, INDEX, WEIGHTS) for k in range(8)]
    expected = [lookup(*each)[0] for each in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(1000):
            if not np.array_equal(lookup(*inputs[number])[0], expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_work_without_the_headers_of_python(lookup, monkeypatch) -> None:
    monkeypatch.setattr("smelt.runtime.jit.caller.extension", lambda: None)
    check(lookup)
    assert is_compiled(lookup)
    with pytest.raises(InvalidModel):
        lookup(TABLE, np.array([0, 1, 2, 5]), WEIGHTS)


def test_numpy_runs_models_with_unsupported_operators_as_a_whole(compile_host) -> None:
    artifact = compile_host(
        "g (float[2,2] x) => (order, y) { p, t, order = smelt.Geqp3(x) y = Abs(p) }"
    )
    x = np.array([[4, 0], [0, 9]], np.float32)
    order, y = artifact(x)
    np.testing.assert_array_equal(order, [1, 0])
    np.testing.assert_allclose(np.diagonal(y), [9, 4])
    assert not is_compiled(artifact)
    assert "Geqp3" in artifact.opened().compiled.why


def test_operators_of_onnx_runtime_are_compiled_as_their_bodies() -> None:
    """With only their references, NumPy would have to run the whole model."""
    graph = (
        "g (float[2,3] x, float[3] b) => (float[2,3] y) "
        "{ g = com.microsoft.BiasGelu(x, b) y = com.microsoft.QuickGelu<alpha = 1.5>(g) }"
    )
    artifact = smelt.compile(text.parse(graph, 23), target="host", engine="native")
    x, b = np.float32([[-1, 0, 2], [3, -4, 1]]), np.float32([0.5, 0, -0.5])
    (y,) = artifact(x, b)
    gelu = np.array([[v * 0.5 * (1 + math.erf(v / 2**0.5)) for v in row] for row in x + b])
    np.testing.assert_allclose(y, gelu / (1 + np.exp(-1.5 * gelu)), rtol=1e-5, atol=1e-6)
    assert is_compiled(artifact)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let a shell script take the place of the compiler."""

    def stand_in(script: str) -> None:
        path = tmp_path / "cc"
        path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo 1 && exit\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CC", str(path))

    build.warn_once.cache_clear()
    return stand_in


SCRIPTS = {"fails": "echo error: no; exit 1", "hangs": "sleep 60", "makes nothing": "exit 0"}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_failing_compiler_gives_one_warning(lookup, compiler, monkeypatch, script) -> None:
    monkeypatch.setattr(toolchain, "TIME_LIMIT", 0.3)
    compiler(script)
    with pytest.warns(RuntimeWarning, match="NumPy runs it"):
        check(lookup)
    check(lookup)
    assert not is_compiled(lookup)


def test_without_a_compiler(lookup, monkeypatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(RuntimeWarning, match="E661") as caught:
        check(lookup)
    assert caught[0].filename == __file__
    assert not is_compiled(lookup)


def test_a_cache_that_cannot_be_written(lookup, monkeypatch, tmp_path: Path) -> None:
    build.warn_once.cache_clear()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SMELT_CACHE", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="not cached"):
        check(lookup)
    assert is_compiled(lookup)


def test_a_saved_program_is_not_compiled_again(lookup, tmp_path: Path) -> None:
    check(lookup)
    lookup.save(tmp_path / "out")
    saved = open_folder(tmp_path / "out")
    assert saved is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain.Toolchain, "compile", None)  # calling it fails
        runner = saved.load()
        y, _ = runner(TABLE, INDEX, WEIGHTS)
    np.testing.assert_allclose(y, EXPECTED, rtol=1e-5)
    assert runner._fast is not None


def test_models_that_differ_in_names_share_a_library(compile_host) -> None:
    check(compile_host(LOOKUP))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain.Toolchain, "compile", None)
        check(
            compile_host(LOOKUP.replace("a = MatMul", "b = MatMul").replace("Tanh(a)", "Tanh(b)"))
        )
