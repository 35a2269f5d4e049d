"""A damaged folder of a library is refused; the error names the file and the damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_library import with_values

import smelt
from smelt.errors import UsageError
from smelt.targets.saved import open_saved

GRAPH = "g (float[2,4] x, float[4,3] w) => (float[2,3] y) { y = MatMul(x, w) }"


@pytest.fixture(params=["hex", "bin"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    model = with_values(GRAPH, 18, {"w": np.ones((4, 3), np.float32)})
    smelt.compile(model, target="c", weights=request.param).save(tmp_path)
    return tmp_path


def told(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        open_saved(folder).load()
    assert caught.value.code == "E616"
    return f"{caught.value.what}: {caught.value.why}"


@pytest.mark.parametrize("folder", ["hex"], indirect=True)
@pytest.mark.parametrize("text", ["garbage", "", '{"schema": "smelt.c/99"}', "[]"])
def test_an_interface_file_that_is_none(folder: Path, text: str) -> None:
    (folder / "model.json").write_text(text)
    assert told(folder).startswith("'model.json' is damaged")


def test_each_missing_file_is_named(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.name == "report.json":
            continue
        kept = path.read_bytes()
        path.unlink()
        assert told(folder).startswith(f"'{path.name}' is missing")
        path.write_bytes(kept)


@pytest.mark.parametrize("folder", ["bin"], indirect=True)
def test_weights_are_those_that_were_written(folder: Path) -> None:
    weights = folder / "model_weights.bin"
    whole = weights.read_bytes()
    for data in (whole[:-1], b"", whole[:-1] + b"\1"):
        weights.write_bytes(data)
        assert "'model_weights.bin' is damaged" in told(folder)


@pytest.mark.parametrize("folder", ["hex"], indirect=True)
@pytest.mark.parametrize("file", ["model.c", "model_weights.c"])
def test_code_without_what_is_called(folder: Path, file: str) -> None:
    (folder / file).write_text("")
    assert f"'{file}' is damaged" in told(folder)


@pytest.mark.parametrize("folder", ["hex"], indirect=True)
def test_code_that_a_user_changed_runs(folder: Path) -> None:
    code = folder / "model.c"
    code.write_text("/* ours */\n" + code.read_text())
    (y,) = open_saved(folder).load()(np.ones((2, 4), np.float32))
    assert y.tolist() == [[4, 4, 4]] * 2


@pytest.mark.parametrize("folder", ["hex"], indirect=True)
def test_a_header_of_another_version(folder: Path) -> None:
    header = folder / "model.h"
    text = header.read_text()
    header.write_text(text.replace("_INTERFACE_VERSION 2", "_INTERFACE_VERSION 1"))
    assert "another version: its header has the interface version 1" in told(folder)
