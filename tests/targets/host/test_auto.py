"""The engine ``auto``: NumPy runs the calls until the background has compiled the program."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text
from smelt.runtime.jit import background, toolchain
from smelt.targets.base import Artifact
from smelt.targets.host.options import Options

ROWS = """g (float[{}, 8] x, int64[2] i) => (float[2, 8] y) {{ s = Exp(x) y = Gather(s, i) }}"""
X = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
INDEX = np.array([4, 0])
EXPECTED = np.exp(X[INDEX])


@pytest.fixture(params=["auto"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(compile_host, tmp_path: Path, monkeypatch) -> Callable[..., Artifact]:
    """Return the artifact of ROWS with this many rows, with an empty cache at first."""
    monkeypatch.setenv("SMELT_CACHE", str(tmp_path / "cache"))
    return lambda rows="5": compile_host(ROWS.format(rows))


@pytest.fixture
def forbidden(monkeypatch) -> None:
    """Make every start of a compiler fail the test."""
    monkeypatch.setattr(toolchain.Toolchain, "compile", None)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch) -> Callable[[str], None]:
    """Let a shell script take the place of the compiler."""

    def stand_in(script: str) -> None:
        path = tmp_path / "cc"
        path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo 1 && exit\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CC", str(path))

    return stand_in


def check(artifact: Callable[..., tuple], x: np.ndarray = X) -> None:
    np.testing.assert_allclose(artifact(x, INDEX)[0], np.exp(x[INDEX]), rtol=1e-5)


def is_compiled(artifact: Artifact) -> bool:
    return artifact.opened()._fast is not None


def test_the_engine_is_auto_unless_the_environment_or_an_option_names_one(monkeypatch) -> None:
    monkeypatch.delenv("SMELT_HOST_ENGINE")
    assert Options().engine == "auto"
    monkeypatch.setenv("SMELT_HOST_ENGINE", "native")
    assert Options().engine == "native"
    assert Options(engine="numpy").engine == "numpy"
    monkeypatch.setenv("SMELT_HOST_ENGINE", "fast")
    with pytest.raises(UsageError, match="SMELT_HOST_ENGINE") as caught:
        Options()
    assert caught.value.code == "E660"


def test_calls_are_native_once_it_is_ready(make) -> None:
    artifact = make()
    check(artifact)
    assert not is_compiled(artifact)
    assert artifact.ready(60)
    check(artifact)
    assert is_compiled(artifact)


def test_static_programs_compile_without_a_call_and_are_cached(make, request) -> None:
    first = make()
    assert first.ready(60)
    request.getfixturevalue("forbidden")
    later = make()
    check(later)
    assert is_compiled(later)


def test_sizes_called_once_are_not_compiled(make) -> None:
    artifact = make("N")
    check(artifact)
    check(artifact, X[:5])
    check(artifact, np.concatenate([X, X]))
    compiled = artifact.opened().compiled
    with compiled._changed:
        assert compiled._changed.wait_for(lambda: not compiled._pending, 60)
    assert list(compiled._callers) == [((5, 8), (2,))]


def test_ready_waits_for_the_shapes_that_were_called(make) -> None:
    artifact = make("N")
    check(artifact)
    assert artifact.ready(60)
    check(artifact)
    assert is_compiled(artifact)


def test_errors_are_those_of_numpy(make) -> None:
    artifact = make()
    for _ in range(2):
        with pytest.raises(InvalidModel) as caught:
            artifact(X, INDEX + 4)
        assert caught.value.code == "E321"
        for wrong, code in ((X[:3], "E670"), (X.astype(np.float64), "E671"), (None, "E671")):
            with pytest.raises(UsageError) as refused:
                artifact(wrong, INDEX)
            assert refused.value.code == code
        assert artifact.ready(60)


def test_verify_compares_the_compiled_form(make, monkeypatch) -> None:
    artifact = make()
    ran = []
    monkeypatch.setattr(type(artifact.opened()), "_by_numpy", lambda *given: ran.append(given))
    assert artifact.ready(60)
    assert smelt.verify(artifact.model, artifact).ok
    assert not ran


def test_a_failing_compiler_gives_one_warning(make, compiler) -> None:
    artifact = make()
    compiler("echo error: no; exit 1")
    check(artifact)
    assert artifact.ready(60)
    with pytest.warns(RuntimeWarning, match="NumPy runs it"):
        check(artifact)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(artifact)


def test_without_a_compiler_there_is_no_warning(make, monkeypatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    artifact = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(artifact)
        assert artifact.ready(60)
        check(artifact)
    assert "E661" in artifact.opened().compiled.why


def test_released_artifacts_are_not_compiled(make, compiler, tmp_path: Path) -> None:
    compiler("sleep 0.3; exit 1")
    first, second = make(), make()
    check(first)
    check(second)
    gone = weakref.ref(second.opened().compiled)
    del second
    gc.collect()
    assert gone() is None
    assert first.ready(60)


ONCE = """
import numpy as np, smelt, sys
artifact = smelt.load_artifact(sys.argv[1])
artifact(np.ones((5, 8), np.float32), np.array([0, 1]))
import pathlib, time
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
print(time.time())
"""


def test_process_exit_kills_compilers_and_removes_their_files(
    make, compiler, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    compiler(f"echo $$ > {started}.part; mv {started}.part {started}; sleep 60")
    make().save(tmp_path / "out")
    command = [sys.executable, "-c", ONCE, str(tmp_path / "out"), str(started)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert time.time() - float(told.stdout) < 40  # seconds of the 60 that the compiler takes
    assert not told.stderr
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_pickled_artifact_runs_alike(make) -> None:
    artifact = smelt.compile(text.parse(ROWS.format("N")), target="host", engine="auto")
    again = pickle.loads(pickle.dumps(artifact))
    check(again)
    assert again.plan.options == artifact.plan.options


def test_a_saved_artifact_runs_alike(make, tmp_path: Path) -> None:
    make().save(tmp_path / "out")
    again = smelt.load_artifact(tmp_path / "out")
    check(again)
    assert again.ready(60)
    check(again)
    assert again.opened()._fast is not None


def in_child(artifact: Artifact, answers) -> None:
    check(artifact)
    answers.put((artifact.ready(60), background.background().ended))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
@pytest.mark.filterwarnings("ignore:a program could not be compiled:RuntimeWarning")
def test_a_forked_child_compiles_for_itself(make, compiler) -> None:
    compiler("sleep 0.5; exit 1")
    artifact = make()
    check(artifact)  # the parent compiles meanwhile
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=in_child, args=(artifact, answers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child.start()
    assert answers.get() == (True, False)
    child.join()
    assert artifact.ready(60)
