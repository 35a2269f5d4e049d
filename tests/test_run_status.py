"""A run that fails although its tests passed says why near the end of its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import run_status
from coverage_floor import DIRECTORY, CoverageFloor

CONFTEST = """
import pytest, run_status

def pytest_configure(config):
    run_status.register(config)

def pytest_sessionfinish(session):
    run_status.note(session, "a note")
    run_status.fail(session, ["the reason"])
"""
WARNS = "import warnings\ndef test_passes(): warnings.warn('one of many')\n"


def test_the_reason_stands_between_all_sections_and_the_last_line(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(WARNS)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:xdist", str(tmp_path)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLIPCOVER", "PYTEST"))}
    environment["PYTHONPATH"] = str(Path(run_status.__file__).parent)
    ran = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    note, title, reason, last = ran.stdout.splitlines()[-4:]
    assert (note, reason, ran.returncode) == ("a note", "the reason", 1)
    assert "checks of the whole run failed" in title
    assert last.startswith("1 passed, 1 warning")


@pytest.mark.parametrize(
    ("percent", "files", "status", "said"),
    [
        (96.0, ("gw0", "gw1", "merged"), 0, []),
        (95.9, ("gw0", "gw1", "merged"), 1, ["coverage: 95.90 %"]),
        (80.0, ("gw0", "merged"), 1, ["coverage: 80.00 %", "worker gw1 are not counted, which"]),
        (0.0, (), 1, ["found no coverage", "worker gw0 are not counted", "worker gw1"]),
    ],
)
def test_a_run_below_its_floor_names_the_workers_whose_lines_are_lost(
    percent, files, status, said, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    for name in files:
        path = tmp_path / ("merged.json" if name == "merged" else f"coverage-{name}.json")
        path.write_text(json.dumps({"summary": {"percent_covered": percent}}))
    shown = run_status.RunStatus()
    manager = SimpleNamespace(getplugin=lambda name: shown)
    session = SimpleNamespace(config=SimpleNamespace(pluginmanager=manager), exitstatus=0)
    floor = CoverageFloor(96)
    for worker, error in (("gw0", None), ("gw1", "Not properly terminated")):
        floor.pytest_testnodedown(SimpleNamespace(gateway=SimpleNamespace(id=worker)), error)
    floor.pytest_sessionfinish(session)
    assert session.exitstatus == status
    assert len(shown.reasons) == len(said)
    assert all(part in line for part, line in zip(said, shown.reasons, strict=True))
    assert bool(shown.notes) == (status == 0)
