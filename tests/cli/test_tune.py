"""``smelt tune``: a table of costs as a file, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import pytest

from smelt.frontends.onnx import to_proto
from smelt.ir import text
from smelt.targets.ort import measure
from smelt.targets.ort.choices import CHOICES

MODEL = to_proto(
    text.parse("g (float[4,8] x) => (float[4,8] y) { t = Relu(x) y = Relu(t) }")
).SerializeToString()


def test_the_table_is_written(
    smelt: Any, document: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        measure, "measure_cell", lambda choice, cell, threads: dict.fromkeys(choice.forms, 1e-6)
    )
    path = tmp_path / "costs.json"
    told = document(smelt("tune", "--target", "ort", "-o", path, "--json"))
    assert told == json.loads(path.read_text())
    assert set(told["choices"]) == set(CHOICES)
    assert told["complete"]


REFUSED = {
    "E664": ["tune", "--target", "c", "-o", "costs.json"],
    "E614": ["tune", "--target", "ort", "-o", "no/such/folder/costs.json"],
}


@pytest.mark.parametrize(("code", "arguments"), REFUSED.items(), ids=REFUSED)
def test_refuses(smelt: Any, code: str, arguments: list[str]) -> None:
    done = smelt(*arguments, "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["code"] == code


def test_a_file_that_is_no_table_is_refused_and_kept(smelt: Any, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text("{}")
    done = smelt("tune", "--target", "ort", "-o", path, "--json")
    assert json.loads(done.stdout)["error"]["code"] == "E662"
    assert path.read_text() == "{}"


def test_compile_reports_its_tuning(smelt: Any, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(MODEL)
    for seconds, told in (("1", "tuned: the "), ("0", " of 1 tried")):
        done = smelt("compile", model, "--target", "ort", "--tune", seconds, "-o", tmp_path / "out")
        assert done.exit_code == 0
        assert told in done.output
    assert "; no time was left for " in done.output


def test_a_model_is_tuned_as_it_is_compiled(smelt: Any, document: Any, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(MODEL)
    folder = tmp_path / "out"
    told = document(
        smelt("compile", model, "--target", "ort", "--tune", "1", "-o", folder, "--json")
    )
    assert told["tune"]["threads"] == 1
    assert {path.name for path in folder.iterdir()} == {"model.onnx", "session.json"}


def test_an_exported_program_is_tuned(smelt: Any, document: Any, tmp_path: Path) -> None:
    function = jax.jit(lambda x: jnp.tanh(x) * 2)
    exported = jax.export.export(function)(jax.ShapeDtypeStruct((4, 8), jnp.float32))
    program = tmp_path / "program.jaxexport"
    program.write_bytes(bytes(exported.serialize()))
    arguments = ("--target", "ort", "--tune", "1", "-o", tmp_path / "out", "--json")
    assert document(smelt("compile", program, *arguments))["tune"]["threads"] == 1


def test_other_targets_are_not_tuned(smelt: Any, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(MODEL)
    done = smelt("compile", model, "--target", "c", "--tune", "1", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "E637"
