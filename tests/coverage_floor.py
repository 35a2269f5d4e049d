"""How much of src/ the tests have to run: ``--coverage-floor``, where slipcover counts the lines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import run_status

OPTION = "--coverage-floor"
DIRECTORY = "SLIPCOVER_COVERAGE_DIR"
"""Where slipcover's plugin leaves ``coverage-gw0.json`` for each worker of xdist, and what they have
run together: ``merged.json``."""


class CoverageFloor:
    """A plugin of the process that starts the workers: fails a run that covers less than ``floor``.

    slipcover only warns of a worker whose lines it cannot write or read. Then less is covered than
    the tests ran, so the reason names the worker.
    """

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.ended: dict[str, str] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """Note each worker, and how it died if it did."""
        self.ended[node.gateway.id] = f", which died: {error}" if error else ""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare what all workers covered with the floor."""
        folder = Path(os.environ.get(DIRECTORY, ""))
        lost = [
            f"the lines of worker {worker} are not counted{how}"
            for worker, how in sorted(self.ended.items())
            if not (folder / f"coverage-{worker}.json").is_file()
        ]
        if not (folder / "merged.json").is_file():
            needed = f"{OPTION} found no coverage: it needs `python -m slipcover -m pytest -n 2`"
            run_status.fail(session, [needed, *lost])
            return
        summary = json.loads((folder / "merged.json").read_text(encoding="utf-8"))["summary"]
        percent = float(summary["percent_covered"])
        line = f"coverage: {percent:.2f} % of the lines of src/, floor {self.floor:g} %"
        if percent < self.floor:
            run_status.fail(session, [line, *lost])
        else:
            run_status.note(session, line)


def register(config: pytest.Config) -> None:
    """Watch if ``--coverage-floor`` is given; not in a worker."""
    floor = config.getoption(OPTION)
    if floor is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(CoverageFloor(floor))
