"""A run of the tests of a pass fails if one of its numbered guards may be off for all they see.

Workers tell with each report which guards it needed; the controller knows at the end. Files that
ran in part, by ``-k``, by name or up to a failure, are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import run_status

KEY = "guards"
OWN = re.compile(r"tests/passes/\w+/test_(\w+)\.py::")
RUNS = 6
"""Runs of the pass that one test gives; the others try the same graph at other opsets."""


class Guarding:
    """A plugin: turns guards of a pass off in turn, for the graphs of its own tests."""

    def __init__(self) -> None:
        self.name = ""
        self.runs = 0
        self.needed: set[str] = set()
        self.new: set[str] = set()
        self.finished: set[str] = set()
        self.partly: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        found = OWN.match(nodeid)
        self.name, self.runs = found[1] if found else "", 0
        if found:
            self._watch()

    def _watch(self) -> None:
        """Let each run of a pass tell what it is given; the first time only."""
        from mutants import guards

        if guards.Pass.run is not guards.RUN:
            return

        def run(pass_: guards.Pass, cx: guards.PassContext, options: object = None) -> object:
            self.runs += pass_.name == self.name
            left = {g for g in guards.numbered(self.name) if str(g) not in self.needed}
            if pass_.name == self.name and self.runs <= RUNS and left:
                self.new |= {str(guard) for guard in guards.needed(pass_, cx, options, left)}
                self.needed |= self.new
            return guards.RUN(pass_, cx, options)

        guards.Pass.run = run

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        report.user_properties = [*report.user_properties, (KEY, sorted(self.new))]
        self.new = set()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if found := OWN.match(report.nodeid):
            self.finished.add(found[1])
        for key, guards in report.user_properties:
            self.needed.update(guards if key == KEY else ())

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note what does not run whole, but for slow tests."""
        for item in items:
            if (found := OWN.match(item.nodeid)) and item.get_closest_marker("slow") is None:
                self.partly.add(found[1])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail for guards that no test needs."""
        options = session.config.option
        is_part = options.keyword or any("::" in argument for argument in session.config.args)
        if not hasattr(session.config, "workerinput") and not is_part and exitstatus == 0:
            run_status.fail(session, self.unneeded())

    def unneeded(self) -> Iterator[str]:
        """What to say of each guard that the tests of its pass do not need."""
        if not self.finished:
            return
        from mutants import guards

        for name in sorted((self.finished & guards.PLACES.keys()) - self.partly):
            for guard in guards.numbered(name):
                if str(guard) not in self.needed:
                    yield f"{guard}: no graph of test_{name}.py changes without this guard"


def register(config: pytest.Config) -> None:
    """Watch guards in this run."""
    config.pluginmanager.register(Guarding())
