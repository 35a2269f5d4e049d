"""``--timing`` and ``--trace``: time the phases and passes of a command that compiles.

::

    with timed(timing, trace, as_json) as clock:
        ...
    print_json({"schema": ..., **clock.facts()})
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import STANDARD
from smelt.cli.command import note
from smelt.cli.destinations import check_destination
from smelt.cli.layout import table
from smelt.errors import SmeltError, UsageError
from smelt.spans import Recorder, recording

if TYPE_CHECKING:
    from smelt.spans.timing import Total

Timing = Annotated[
    bool, typer.Option("--timing", help="Print the time of each phase and each pass.")
]
Trace = Annotated[
    str | None,
    typer.Option(
        "--trace", metavar="FILE", help="Write a trace (JSON) for Perfetto or chrome://tracing."
    ),
]

PARTS_SHOWN = 12
"""How many parts of a phase are listed, the longest first; ``--json`` has all."""


class Clock:
    """The recorded spans of a command, and whether ``--timing`` was given."""

    def __init__(self, timing: bool, recorder: Recorder) -> None:
        """Hold ``recorder``, whose spans are complete when the block of ``timed`` has ended."""
        self.timing = timing
        self.recorder = recorder

    def facts(self) -> dict[str, Any]:
        """Return ``{"timing": ...}`` for the document of ``--json``; empty without ``--timing``."""
        from smelt.spans.timing import totals

        if not self.timing:
            return {}
        phases = [total.to_json() for total in totals(self.recorder.spans)]
        times = {"seconds": self.recorder.seconds, "cpu_seconds": self.recorder.cpu}
        return {"timing": {**times, "phases": phases}}


@contextmanager
def timed(timing: bool, trace: str | None, as_json: bool, *files: str | None) -> Iterator[Clock]:
    """Record the block; at its end, or on failure, print the table and write the ``trace``.

    ``files`` are the other files that the command reads and writes. Raises UsageError before the
    block: E614 if the trace has no folder, E637 if it equals one of the files.
    """
    if trace == STANDARD:
        raise UsageError(
            "E637",
            "--trace - cannot write the trace to standard output",
            why="standard output has the result of the command",
            fix="--trace trace.json",
        )
    if trace is not None:
        check_destination(trace, "trace", *files)
    with recording() as recorder:
        clock = Clock(timing, recorder)
        try:
            yield clock
        except BaseException:
            recorder.end()
            _report_times(clock, trace, as_json, failing=True)
            raise
    _report_times(clock, trace, as_json, failing=False)


def _report_times(clock: Clock, trace: str | None, as_json: bool, *, failing: bool) -> None:
    """Print the table and write the trace; if the command fails, a trace error is only noted."""
    if clock.timing and not as_json:
        header = ("phase", "ms", "%", "CPU ms", "runs", "nodes")
        note(table(_rows(clock.recorder), header, stream=sys.stderr))
    if trace is None:
        return
    try:
        _write(clock.recorder, trace)
    except SmeltError as error:
        if not failing:
            raise
        note(f"no trace: {error.what}")  # the command's own error follows


def _write(recorder: Recorder, path: str) -> None:
    """Write the recording to ``path`` as a trace, with the version and the command line."""
    from smelt import __version__
    from smelt.ir.files import write_atomically
    from smelt.spans.chrome_trace import chrome_trace

    document = chrome_trace(recorder, smelt=__version__, command=" ".join(sys.argv[1:]))
    write_atomically(path, json.dumps(document).encode())


def _rows(recorder: Recorder) -> list[tuple[Any, ...]]:
    """Return the rows of the table: phases with their parts, everything else, the total."""
    from smelt.spans.timing import Total, totals

    phases = totals(recorder.spans)
    rest = recorder.seconds - sum(phase.seconds for phase in phases)
    cpu = recorder.cpu - sum(phase.cpu for phase in phases)
    phases.append(Total("everything else", "phase", rest, cpu, 1))
    total_seconds = max(recorder.seconds, 1e-9)
    rows = [row for phase in phases for row in _rows_of(phase, "", total_seconds)]
    return [*rows, ("total", *_figures(recorder.seconds, recorder.cpu, total_seconds), "", "")]


def _rows_of(total: Total, indent: str, total_seconds: float) -> Iterator[tuple[Any, ...]]:
    """Yield the row of ``total``, then its parts indented, the shortest ones summed in one row."""
    nodes = "" if total.nodes is None else " -> ".join(map(str, dict.fromkeys(total.nodes)))
    figures = _figures(total.seconds, total.cpu, total_seconds)
    yield f"{indent}{total.name}", *figures, total.runs, nodes
    for part in total.parts[:PARTS_SHOWN]:
        yield from _rows_of(part, f"{indent}  ", total_seconds)
    hidden = total.parts[PARTS_SHOWN:]
    if hidden:
        figures = _figures(
            sum(p.seconds for p in hidden), sum(p.cpu for p in hidden), total_seconds
        )
        yield f"{indent}  {len(hidden)} others", *figures, sum(p.runs for p in hidden), ""


def _figures(seconds: float, cpu: float, total_seconds: float) -> tuple[float, float, float]:
    """Return milliseconds, percent of ``total_seconds``, and CPU milliseconds."""
    return round(1000 * seconds, 1), round(100 * seconds / total_seconds, 1), round(1000 * cpu, 1)
