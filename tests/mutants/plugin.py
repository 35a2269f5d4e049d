"""The part inside pytest: notes what each test runs, or runs chosen tests in a given order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mutants import importing

CHOSEN = "MUTANTS_TESTS"


def spent() -> float:
    """Return the seconds of CPU of this process and of its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """Notes the blocks, the seconds of CPU and the outcome of each test."""

    def __init__(self) -> None:
        self.before = spent()
        self.failed = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        importing.note("")
        self.before, self.failed = spent(), False

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Note what fixtures ran as of the file, for it may serve each of its tests."""
        importing.note(item.nodeid.partition("::")[0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        importing.note(nodeid, seconds=spent() - self.before, failed=self.failed)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests and files only, in the order of the list."""
    if (chosen := os.environ.get(CHOSEN)) is None:
        return
    order = Path(chosen).read_text(encoding="utf-8").split("\n")
    places = {name: place for place, name in enumerate(order)}
    for item in items:
        if (place := places.get(item.nodeid.partition("::")[0])) is not None:
            places[item.nodeid] = place
    kept = [item for item in items if item.nodeid in places]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
    items[:] = sorted(kept, key=lambda item: places[item.nodeid])
