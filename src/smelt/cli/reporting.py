"""``--report FILE``: what a command did, as one page of HTML."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD
from smelt.errors import SmeltError, UsageError

if TYPE_CHECKING:
    from smelt.check.report.html_report import HtmlReport

Report = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Write what was done as a page of HTML."),
]


@contextmanager
def reporting(path: str | None, title: str, *outputs: str | None) -> Iterator[HtmlReport]:
    """A report that is written to ``path`` at the end, also where the command fails.

    Without a path nothing is written. ``outputs`` are what else the command writes; raises
    UsageError E637 if that is the same.
    """
    from smelt.check.report.html_report import HtmlReport

    if path is not None and path in outputs:
        where = "standard output" if path == STANDARD else repr(path)
        raise UsageError("E637", f"{where} cannot take both the report and the result")
    report = HtmlReport(title)
    try:
        yield report
    except SmeltError as error:
        report.error = error
        if path is not None and not isinstance(error, UsageError):
            _write(report, path)
        raise
    if path is not None:
        _write(report, path)


def _write(report: HtmlReport, path: str) -> None:
    if path == STANDARD:
        sys.stdout.write(report.to_html())
    else:
        report.save(path)
        print(f"report: {path}", file=sys.stderr)
