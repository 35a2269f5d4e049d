"""Why a run fails although all tests passed: printed right above the last line of pytest.

Checks of the whole run (coverage, guards of passes) call ``fail``. Between their lines and the last
line of pytest there is nothing else, so a reader of the end of a log sees the reason.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import pytest

_NAME = "run status"


class RunStatus:
    """A plugin: prints what the checks of the run have to say, failures last."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.reasons: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """Print notes and reasons after all sections of pytest and of its plugins."""
        yield
        for note in self.notes:
            terminalreporter.write_line(note)
        if self.reasons:
            terminalreporter.section("checks of the whole run failed", red=True)
        for reason in self.reasons:
            terminalreporter.write_line(reason, red=True)


def register(config: pytest.Config) -> None:
    """Print what ``note`` and ``fail`` are given at the end of this run."""
    config.pluginmanager.register(RunStatus(), _NAME)


def note(session: pytest.Session, line: str) -> None:
    """Print ``line`` near the end of the run."""
    session.config.pluginmanager.getplugin(_NAME).notes.append(line)


def fail(session: pytest.Session, reasons: Iterable[str]) -> None:
    """Let the run end with status 1 for ``reasons``, if there are any; a failed test comes first."""
    lines = list(reasons)
    session.config.pluginmanager.getplugin(_NAME).reasons.extend(lines)
    if lines and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
