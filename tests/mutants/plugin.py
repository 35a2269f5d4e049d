"""The part inside pytest: notes what each test runs, or runs chosen tests in a given order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mutants import importing

CHOSEN = "MUTANTS_TESTS"
SECONDS = "MUTANTS_SECONDS"


def _spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """Notes the blocks, the seconds of CPU and the outcome of each test, until these are spent."""

    def __init__(self, seconds: float) -> None:
        self.before = _spent()
        self.failed = False
        self.end = self.before + seconds

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if _spent() > self.end:
            item.session.shouldstop = "there is no time for more tests"

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        importing.note("")
        self.before, self.failed = _spent(), False

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Note what fixtures ran as of the file, for it may serve each of its tests."""
        importing.note(item.nodeid.partition("::")[0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        importing.note(nodeid, seconds=_spent() - self.before, failed=self.failed)


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that runs tests, which with xdist is a worker."""
    is_controller = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if os.environ.get(importing.RECORDS) and not is_controller:
        seconds = float(os.environ.get(SECONDS, "inf"))
        config.pluginmanager.register(Recorder(seconds))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests only, in the order of the list; a folder stands for all its tests."""
    if (chosen := os.environ.get(CHOSEN)) is None:
        return
    order = Path(chosen).read_text(encoding="utf-8").split("\n")
    if not any("::" in test for test in order):
        return
    places = {nodeid: place for place, nodeid in enumerate(order)}
    kept = [item for item in items if item.nodeid in places]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
    items[:] = sorted(kept, key=lambda item: places[item.nodeid])
