"""Until a model is compiled, ONNX Runtime runs it where that is installed and right."""

from __future__ import annotations

import logging

import numpy as np
import onnx.parser
import pytest
from small_models import HEADER

import smelt.onnxruntime as ort
from smelt.runtime.jit.background import Background
from smelt.sessions import interim

MODEL = HEADER + "g (float[B,4] x) => (float[B,4] y) { y = Relu(x) }"
INTEGERS = HEADER + "g (int64[B,4] x) => (int64[B,4] y) { y = Max(x, x) }"
TELLS = "ONNX Runtime runs the model until the C compiler is done"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.setenv("SMELT_CACHE", str(tmp_path))
    monkeypatch.delenv("SMELT_HOST_ENGINE", raising=False)
    caplog.set_level(logging.INFO, "smelt.onnxruntime")


@pytest.fixture
def slow_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job of the background thread begins."""
    monkeypatch.setattr(Background, "submit", lambda self, work: None)


def _session(source: str = MODEL, **entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(f"smelt.{key}", value)
    return ort.InferenceSession(onnx.parser.parse_model(source).SerializeToString(), options)


def _run(session: ort.InferenceSession, dtype: type = np.float32) -> None:
    x = np.array([[-1, 0, 2, 3]], dtype)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0) if dtype is np.float32 else x)
    assert y.dtype == dtype


def test_onnx_runtime_runs_until_the_compiler_is_done(caplog) -> None:
    session = _session()
    _run(session)
    _run(session)
    assert caplog.messages == [TELLS]
    assert session.ready(None)
    _run(session)
    _run(session)
    assert caplog.messages == [TELLS, "the compiled program runs the model"]


@pytest.mark.usefixtures("slow_compiler")
def test_what_onnx_runtime_refuses_runs_by_numpy(caplog, monkeypatch) -> None:
    session = _session()

    def refuse(*_: object) -> None:
        raise RuntimeError("it refuses")

    monkeypatch.setattr(interim, "open_session", refuse)
    _run(session)
    _run(session)
    told = "NumPy runs the model until the C compiler is done: it refuses"
    assert caplog.messages == [TELLS, told]


@pytest.mark.usefixtures("slow_compiler")
def test_a_file_that_changed_is_another_model(caplog, tmp_path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    session = ort.InferenceSession(file)
    file.write_bytes(onnx.parser.parse_model(MODEL.replace("Relu", "Neg")).SerializeToString())
    _run(session)
    assert "has changed" in caplog.messages[-1]


@pytest.mark.usefixtures("slow_compiler")
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_other_engines_do_not_ask_onnx_runtime(caplog, engine: str) -> None:
    _run(_session(engine=engine))
    assert caplog.messages == []


@pytest.mark.usefixtures("slow_compiler")
def test_operators_with_a_defect_run_by_numpy(caplog) -> None:
    _run(_session(INTEGERS), np.int64)
    assert caplog.messages == []


@pytest.mark.usefixtures("slow_compiler")
def test_without_onnx_runtime_numpy_runs(caplog, monkeypatch) -> None:
    monkeypatch.setattr(interim, "find_spec", lambda name: None)
    _run(_session())
    assert caplog.messages == []


@pytest.mark.usefixtures("slow_compiler")
def test_a_forked_child_opens_a_session_of_its_own(caplog, monkeypatch) -> None:
    session = _session()
    _run(session)
    monkeypatch.setattr(interim.os, "getpid", lambda: -1)
    _run(session)
    assert caplog.messages == [TELLS, TELLS]
