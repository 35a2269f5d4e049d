"""``--report FILE`` and ``--picture FILE``: write what a command did as HTML, and a layer as SVG.

::

    with reporting(report, "a title", output) as page:
        optimize_model(..., observers=page.observers)
        page.report.evidence = ...
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import STANDARD
from smelt.cli.command import note
from smelt.cli.destinations import check_destination
from smelt.errors import SmeltError, UsageError
from smelt.ir.files import write_atomically
from smelt.spans import recording

if TYPE_CHECKING:
    from smelt.check.report.html_report import HtmlReport
    from smelt.passes.run import Observer

Report = Annotated[
    str | None,
    typer.Option(
        "--report", metavar="FILE", help="Write a page of HTML that shows what the command did."
    ),
]

Picture = Annotated[
    str | None,
    typer.Option("--picture", metavar="FILE", help="Draw a layer before and after as SVG."),
]


@dataclass
class Page:
    """The report that a command fills; ``wanted`` says whether anything is written."""

    report: HtmlReport
    wanted: bool

    @property
    def observers(self) -> list[Observer]:
        """The pipeline observers that fill the report; empty if no report is wanted."""
        return [self.report] if self.wanted else []


@contextmanager
def reporting(
    path: str | None,
    title: str,
    *outputs: str | None,
    reads: Iterable[str] = (),
    picture: str | None = None,
) -> Iterator[Page]:
    """Yield a Page that is written to ``path`` at the end, also if the command fails.

    If the command succeeds, its picture is written to ``picture``. ``outputs`` are the other files
    that the command writes, ``reads`` those that it reads. Raises UsageError before the block: E614
    if ``path`` or ``picture`` has no folder, E637 if it equals another file.
    """
    from smelt.check.report.html_report import HtmlReport

    report = HtmlReport("standard input" if title == STANDARD else title.rpartition("/")[2])
    if picture is not None:
        _check_path(picture, "picture", "layer.svg", (path, *outputs), reads)
    if path is None:
        yield Page(report, wanted=picture is not None)
        _draw(report, picture)
        return
    _check_path(path, "report", "report.html", outputs, reads)
    with recording() as report.recorder:
        try:
            yield Page(report, wanted=True)
        except UsageError:
            raise
        except SmeltError as error:
            report.error = error
            try:
                _write(report, path)
            except SmeltError as failure:
                note(f"no report: {failure.what}")  # the command's own error follows
            raise
    _write(report, path)
    _draw(report, picture)


def _check_path(
    path: str, word: str, example: str, outputs: Sequence[str | None], reads: Iterable[str]
) -> None:
    """Raise UsageError E614 or E637 if the ``word``, report or picture, cannot go to ``path``."""
    if path != STANDARD:
        check_destination(path, word, *outputs, *reads)
    elif STANDARD in outputs:
        raise UsageError(
            "E637",
            f"the {word} and another result both go to standard output",
            why="a reader could not tell one from the other",
            fix=f"--{word} {example}",
        )


def _draw(report: HtmlReport, path: str | None) -> None:
    """Write the picture of ``report`` to ``path``, or to standard output for ``-``.

    Does nothing if ``path`` is None, because no picture is wanted then.
    """
    if path == STANDARD:
        sys.stdout.write(report.to_svg())
    elif path is not None:
        write_atomically(path, report.to_svg().encode())
        note(f"picture: {path}")


def _write(report: HtmlReport, path: str) -> None:
    """Write the page of ``report`` to ``path``."""
    if path == STANDARD:
        sys.stdout.write(report.to_html())
    else:
        report.save(path)
        note(f"report: {path}")
