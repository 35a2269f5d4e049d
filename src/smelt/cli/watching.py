"""The options of every command that runs passes: what to show of them, and where to write it.

::

    @command
    def convert(output: Annotated[...], *, watching: Watching) -> None:
        with watching.over("reading a model", title, output) as seen:
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
from smelt.cli.reporting import Report, reporting
from smelt.cli.timing import Clock, Timing, Trace, timed

if TYPE_CHECKING:
    from smelt.check.report.html_report import HtmlReport
    from smelt.passes.run import Observer


@dataclass(frozen=True)
class Watched:
    """What a command fills while it works: what it says, its clock, and its report."""

    shown: Progress
    clock: Clock
    report: HtmlReport
    observers: Sequence[Observer]


@dataclass(frozen=True)
class Watching:
    """The options; ``command`` makes each field one of the command line."""

    dry_run: DryRun = False
    print_changed: PrintChanged = None
    print_after: PrintAfter = None
    print_limit: PrintLimit = LINES
    timing: Timing = False
    trace: Trace = None
    report: Report = None
    as_json: Json = False

    @contextmanager
    def over(
        self, doing: str, title: str, *outputs: str, reads: Iterable[str] = ()
    ) -> Iterator[Watched]:
        """Watch the block, which reads and writes these files besides.

        ``doing`` is what it begins with, ``title`` that of its report. Raises UsageError before
        the block: E601 for a pass that does not exist, E614 and E637 for files that cannot be
        written.
        """
        files = (*reads, *outputs)
        printing = (STANDARD,) if self.as_json else ()
        with (
            printed(self.print_changed, self.print_after, self.print_limit) as printers,
            timed(self.timing, self.trace, self.as_json, *files, self.report) as clock,
            reporting(self.report, title, *outputs, *printing, reads=reads) as page,
            progress(doing) as shown,
        ):
            yield Watched(shown, clock, page.report, [shown, *printers, *page.observers])
