"""``smelt tune``: a table of costs as a file, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smelt.targets.ort import measure
from smelt.targets.ort.choices import CHOICES


def test_the_table_is_written(
    smelt: Any, document: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        measure, "measured", lambda choice, cell, threads: dict.fromkeys(choice.forms, 1e-6)
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
