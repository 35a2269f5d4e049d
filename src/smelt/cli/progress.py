"""Show the current step, number of nodes and time on a terminal while a command runs long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir
    from rich.progress import Progress as Bar

    from smelt.passes.pipeline import Step
    from smelt.passes.run import PassReport

DELAY = 2.0
"""Seconds before the line is first shown."""


class Progress:
    """Shows the current step in one line after ``DELAY`` seconds; an observer of pipelines."""

    def __init__(self, text: str) -> None:
        """Show nothing yet: the timer starts the bar after ``DELAY`` seconds."""
        self.text = text
        self._bar: Bar | None = None
        self._timer = threading.Timer(DELAY, self._show)
        self._timer.daemon = True
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Show ``text`` from now on."""
        with self._lock:
            self.text = text
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], description=escaped(text))

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Show the name of the pass that starts and the number of nodes."""
        self.say(f"{step.pass_.spelling}: {len(model.graph):,} nodes")

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Do nothing: the line changes when the next pass starts."""

    def start(self) -> None:
        """Start the timer that shows the line after ``DELAY`` seconds."""
        self._timer.start()

    def stop(self) -> None:
        """Remove the progress line from the terminal."""
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        """Show the line, with its clock set back to the start of the command."""
        from rich.console import Console
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with self._lock:
            self._bar = Bar(*columns, console=Console(stderr=True, soft_wrap=True), transient=True)
            self._bar.add_task(escaped(self.text), total=None)
            started = self._bar.tasks[0].start_time
            self._bar.tasks[0].start_time = started - DELAY if started is not None else None
            self._bar.start()


def escaped(text: str) -> str:
    """Return ``text`` with the markup characters of rich escaped."""
    from rich.markup import escape

    return escape(text)


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """Show ``text``, and later texts given to ``say``, if standard error is a terminal."""
    shown = Progress(text)
    if sys.stderr.isatty():
        shown.start()
    try:
        yield shown
    finally:
        shown.stop()


def size_of(path: str) -> str:
    """Return the size of the file at ``path`` as ``(1,234 bytes)``; empty if there is no file."""
    try:
        return f" ({Path(path).stat().st_size:,} bytes)"
    except OSError:
        return ""
