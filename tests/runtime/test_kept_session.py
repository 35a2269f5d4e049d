"""A model that ONNX Runtime optimized is stored and opened again, and stored anew once it is
outdated.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.runtime import kept_session
from smelt.runtime.inputs import random_inputs
from smelt.runtime.kept_session import FILE, open_kept
from smelt.runtime.session import SessionAdvice, open_session
from smelt.targets.saved import open_saved

CONVOLUTIONS = """
g (float[N,3,16,16] x) => (float[N,64,16,16] y) {
    a = Constant<value_ints = [64, 3, 3, 3]>() v = ConstantOfShape<value = float[1] {0.125}>(a)
    b = Constant<value_ints = [64, 64, 3, 3]>() w = ConstantOfShape<value = float[1] {0.25}>(b)
    c = Conv<pads = [1, 1, 1, 1]>(x, v) d = Sigmoid(c) e = Conv<pads = [1, 1, 1, 1]>(d, w)
    y = Mul(e, d)
}
"""
BRANCHES = """
g (float[N] x, bool p) => (float[N] y) {
    y = If(p) <then_branch = t () => (float[N] a) { a = Neg(x) },
               else_branch = f () => (float[N] b) { n = Exp(x) b = Sin(n) }>
}
"""
OVERRIDABLE = "g (float[4] x, float[4] w = {1, 2, 3, 4}) => (float[4] y) { y = Mul(x, w) }"


def _saved(tmp_path: Path, graph: str = CONVOLUTIONS) -> Path:
    smelt.compile(text.parse(graph), target="ort").save(tmp_path / "out")
    return tmp_path / "out" / "model.onnx"


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.mark.parametrize("graph", [CONVOLUTIONS, BRANCHES])
def test_the_second_session_opens_what_the_first_left(graph: str, tmp_path: Path) -> None:
    path, advice, kept = _saved(tmp_path, graph), SessionAdvice(threads=1), tmp_path / "kept"
    values = random_inputs(smelt.load(path), {"N": 2})
    expected = open_session(path, advice)
    feeds = {v.name: x for v, x in zip(expected.get_inputs(), values, strict=True)}
    (y,) = expected.run(None, feeds)
    for _ in range(2):
        (same,) = open_kept(path, advice, kept).run(None, feeds)
        np.testing.assert_array_equal(same, y)
    (entry,) = _entries(kept)
    (entry / FILE).write_bytes(b"nonsense")
    np.testing.assert_array_equal(open_kept(path, advice, kept).run(None, feeds)[0], y)
    assert onnx.load(entry / FILE).graph.node


def test_a_kept_model_is_really_opened(tmp_path: Path, monkeypatch) -> None:
    path, advice, kept = _saved(tmp_path), SessionAdvice(threads=1), tmp_path / "kept"
    open_kept(path, advice, kept)
    opened: list[Path] = []

    def watched(model: Path, *rest: object) -> object:
        opened.append(model)
        return open_session(model, *rest)

    monkeypatch.setattr(kept_session, "open_session", watched)
    open_kept(path, advice, kept)
    assert opened == [_entries(kept)[0] / FILE]


def test_a_changed_model_is_made_anew(tmp_path: Path) -> None:
    path, kept = _saved(tmp_path), tmp_path / "kept"
    open_kept(path, SessionAdvice(), kept)
    (before,) = _entries(kept)
    smelt.save(text.parse(CONVOLUTIONS.replace("y = Mul", "y = Add")), path)
    os.utime(path, ns=(1, 1))
    session = open_kept(path, SessionAdvice(), kept)
    (after,) = _entries(kept)
    assert after != before
    x = np.zeros((1, 3, 16, 16), np.float32)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(open_kept(path, SessionAdvice(), kept).run(None, {"x": x})[0], y)


@pytest.mark.parametrize("changed", ["_machine", "version"])
def test_another_machine_or_runtime_opens_none_of_it(changed: str, tmp_path, monkeypatch) -> None:
    path, kept = _saved(tmp_path), tmp_path / "kept"
    open_kept(path, SessionAdvice(), kept)
    before = _entries(kept)
    monkeypatch.setattr(kept_session, changed, lambda: "another")
    open_kept(path, SessionAdvice(), kept)
    assert _entries(kept) != before


def test_options_that_change_the_graph_are_told_apart(tmp_path: Path) -> None:
    path, kept = _saved(tmp_path), tmp_path / "kept"
    names = set()
    for advice in (SessionAdvice(), SessionAdvice(level="basic"), SessionAdvice(threads=1)):
        open_kept(path, advice, kept)
        names |= {entry.name for entry in _entries(kept)}
    assert len(names) == 2  # threads change no graph
    open_kept(path, SessionAdvice(level="disabled"), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_default_of_an_input_stays_one(tmp_path: Path) -> None:
    path, kept = tmp_path / "m.onnx", tmp_path / "kept"
    smelt.save(text.parse(OVERRIDABLE), path)
    x, w = np.ones(4, np.float32), np.full(4, 9, np.float32)
    for _ in range(2):
        session = open_kept(path, SessionAdvice(), kept)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], [1, 2, 3, 4])
        np.testing.assert_array_equal(session.run(None, {"x": x, "w": w})[0], w)


def test_the_folder_of_an_artifact_takes_it(tmp_path: Path) -> None:
    saved = open_saved(_saved(tmp_path).parent)
    session = saved.session(kept=tmp_path / "kept", threads=1)
    assert session.get_session_options().intra_op_num_threads == 1
    assert _entries(tmp_path / "kept")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path, file = _saved(tmp_path), tmp_path / "file"
    file.write_text("")
    with pytest.raises(UsageError) as caught:
        open_kept(path, SessionAdvice(), file / "kept")
    assert caught.value.code == "E614"
