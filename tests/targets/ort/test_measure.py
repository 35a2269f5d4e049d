"""Measuring: the table, and that a run which was stopped goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smelt.errors import SmeltError
from smelt.targets.ort import measure
from smelt.targets.ort.choices import CHOICES
from smelt.targets.ort.costs import read_costs

FEW = {"silu": CHOICES["silu"]}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The cells that were measured, each in no time."""
    cells: list[dict[str, int]] = []

    def measured(choice: Any, cell: dict[str, int], threads: int) -> dict[str, float]:
        cells.append(cell)
        return dict.fromkeys(choice.forms, 1e-6)

    monkeypatch.setattr(measure, "CHOICES", FEW)
    monkeypatch.setattr(measure, "measure_cell", measured)
    return cells


def test_a_run_that_was_stopped_goes_on(counted: list[dict[str, int]], tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    whole = measure.tune(path)
    assert whole["complete"]
    document = json.loads(path.read_text())
    document["choices"]["silu"] = document["choices"]["silu"][:3]
    path.write_text(json.dumps(document))
    del counted[:]
    assert measure.tune(path) == whole
    assert len(counted) == len(list(FEW["silu"].cells())) - 3


def test_costs_of_another_runtime_are_measured_again(
    counted: list[dict[str, int]], tmp_path: Path
) -> None:
    path = tmp_path / "costs.json"
    measure.tune(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "runtime": "0.1"}))
    del counted[:]
    measure.tune(path)
    assert len(counted) == len(list(FEW["silu"].cells()))


def test_no_time_leaves_it_open(counted: list[dict[str, int]], tmp_path: Path) -> None:
    assert not measure.tune(tmp_path / "costs.json", seconds=-1)["complete"]
    assert not counted


def test_each_form_of_a_cell_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "ROUNDS", (3, 3))
    choice = CHOICES["silu"]
    taken = measure.measure_cell(choice, {"rows": 1, "width": 256}, 1)
    assert set(taken) == set(choice.forms)
    assert all(0 < seconds < 1 for seconds in taken.values())


def test_a_cell_without_a_form_that_the_runtime_has_holds_no_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("NOT_IMPLEMENTED")

    monkeypatch.setattr(measure, "open_session", refuse)
    assert measure.measure_cell(CHOICES["silu"], {"rows": 1, "width": 256}, 1) == {}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "smelt.costs/2", "choices": {}}'])
def test_another_file_is_no_table(content: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(content)
    with pytest.raises(SmeltError) as caught:
        read_costs(path)
    assert caught.value.code == "E662"
