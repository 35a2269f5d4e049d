"""``--report FILE``: what a command did, as one page of HTML.

::

    with reporting(report, "a title", output) as page:
        optimize_model(..., observers=page.observers)
        page.report.evidence = ...
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD
from smelt.cli.command import note
from smelt.errors import SmeltError, UsageError
from smelt.spans import recording

if TYPE_CHECKING:
    from smelt.check.report.html_report import HtmlReport
    from smelt.passes.run import Observer

Report = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Show what was done on a page of HTML."),
]


@dataclass
class Page:
    """A report that is filled, and whether anybody ``wanted`` it."""

    report: HtmlReport
    wanted: bool

    @property
    def observers(self) -> list[Observer]:
        """Those that a pipeline needs for the report: none if nobody wants it."""
        return [self.report] if self.wanted else []


@contextmanager
def reporting(path: str | None, title: str, *outputs: str | None) -> Iterator[Page]:
    """A page that is written to ``path`` at the end, also where the command fails.

    ``outputs`` are what else the command writes; raises UsageError E637 if that is the same.
    """
    from smelt.check.report.html_report import HtmlReport

    report = HtmlReport(title)
    if path is None:
        yield Page(report, wanted=False)
        return
    if path in outputs:
        where = "standard output" if path == STANDARD else repr(path)
        raise UsageError("E637", f"{where} cannot take both the report and the result")
    with recording() as report.recorder:
        try:
            yield Page(report, wanted=True)
        except UsageError:
            raise
        except SmeltError as error:
            report.error = error
            _write(report, path)
            raise
    _write(report, path)


def _write(report: HtmlReport, path: str) -> None:
    if path == STANDARD:
        sys.stdout.write(report.to_html())
    else:
        report.save(path)
        note(f"report: {path}")
