"""The options of every command that runs passes: what to print, and which reports to write.

::

    @command
    def convert(output: Annotated[...], *, watching: Watching) -> None:
        with watching.watched("reading a model", title, output) as seen:
            optimize_model(..., observers=seen.observers)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smelt.cli.arguments import STANDARD
from smelt.cli.command import Json
from smelt.cli.dry_run import DryRun
from smelt.cli.printing import LINES, PrintAfter, PrintChanged, PrintLimit, printed
from smelt.cli.progress import Progress, progress
from smelt.cli.reporting import Picture, Report, reporting
from smelt.cli.timing import Clock, Timing, Trace, timed

if TYPE_CHECKING:
    from smelt.check.report.html_report import HtmlReport
    from smelt.passes.run import Observer


@dataclass(frozen=True)
class Watched:
    """The progress line, clock, report and observers of a running command."""

    shown: Progress
    clock: Clock
    report: HtmlReport
    observers: Sequence[Observer]


@dataclass(frozen=True)
class Watching:
    """The options; ``command`` turns each field into an option of the command line."""

    dry_run: DryRun = False
    print_changed: PrintChanged = None
    print_after: PrintAfter = None
    print_limit: PrintLimit = LINES
    timing: Timing = False
    trace: Trace = None
    report: Report = None
    picture: Picture = None
    as_json: Json = False

    @contextmanager
    def watched(
        self, doing: str, title: str, *outputs: str, reads: Iterable[str] = ()
    ) -> Iterator[Watched]:
        """Watch the block; ``reads`` and ``outputs`` are the files that the command uses.

        ``doing`` is the first progress text, ``title`` the title of the report. Raises UsageError
        before the block: E601 for an unknown pass, E614 and E637 for files that cannot be written.
        """
        files = (*reads, *outputs)
        printing = (STANDARD,) if self.as_json else ()  # --json writes to standard output, too
        with (
            printed(self.print_changed, self.print_after, self.print_limit) as printers,
            timed(self.timing, self.trace, self.as_json, *files, self.report) as clock,
            reporting(
                self.report, title, *outputs, *printing, reads=reads, picture=self.picture
            ) as page,
            progress(doing) as shown,
        ):
            yield Watched(shown, clock, page.report, [shown, *printers, *page.observers])
