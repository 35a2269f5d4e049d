"""What the tests cost: seconds of CPU by file, and of the slowest tenth of all tests.

``--cpu-times N`` lists them at the end of a run, of several workers, too. A test is charged with its
fixtures and with the processes that it waits for, such as C compilers; the first test that needs a
library or a fixture of its module pays for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

OPTION = "--cpu-times"
_KEY = "cpu"


def _spent() -> tuple[float, float]:
    """Seconds of CPU of this process, and of those that it started and waited for."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


class CpuTimes:
    """A plugin: workers tell with each report what its phase took, the controller adds it up."""

    def __init__(self, files: int) -> None:
        self.files = files
        self.own: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self._before = _spent()

    def pytest_runtest_logstart(self) -> None:
        self._before = _spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = _spent()
        own, others = (after - before for after, before in zip(now, self._before, strict=True))
        report.user_properties = [*report.user_properties, (_KEY, (own, others))]
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for own, others in [value for key, value in report.user_properties if key == _KEY]:
            self.own[report.nodeid] += own
            self.others[report.nodeid] += others

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        every = sorted((self.own[test] + self.others[test] for test in self.own), reverse=True)
        tenth = every[: -(-len(every) // 10)]
        by_file: Counter[str] = Counter()
        for test in self.own:
            by_file[test.partition("::")[0]] += self.own[test] + self.others[test]
        terminalreporter.section("seconds of CPU")
        terminalreporter.write_line(
            f"{len(every)} tests {sum(every):.0f} (C compilers and other processes "
            f"{self.others.total():.0f}), the slowest {len(tenth)} {sum(tenth):.0f}"
        )
        for file, seconds in by_file.most_common(self.files):
            terminalreporter.write_line(f"{seconds:7.1f} {file}")


def register(config: pytest.Config) -> None:
    """Measure if ``--cpu-times`` is given."""
    files = config.getoption(OPTION)
    if files is not None:
        config.pluginmanager.register(CpuTimes(files))
