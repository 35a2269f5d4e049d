"""What a command that takes long says meanwhile, on a terminal: the step, the nodes, the time."""

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
"""Seconds after which something is shown."""


class Progress:
    """Tells what is being done, from ``DELAY`` on; an observer of pipelines, too."""

    def __init__(self, text: str) -> None:
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
        """Show the pass that runs, and how many nodes it is about."""
        self.say(f"{step.pass_.spelling}: {len(model.graph):,} nodes")

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """The next pass, or what comes after the pipeline, has a text of its own."""

    def start(self) -> None:
        """Show the text after ``DELAY``."""
        self._timer.start()

    def stop(self) -> None:
        """Take the line away again."""
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
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
    """``text`` with nothing in it that rich takes for markup."""
    from rich.markup import escape

    return escape(text)


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """Shows ``text``, and what is said later, on standard error if that is a terminal."""
    shown = Progress(text)
    if sys.stderr.isatty():
        shown.start()
    try:
        yield shown
    finally:
        shown.stop()


def size_of(path: str) -> str:
    """The bytes of the file at ``path``, ``(1,234 bytes)``; empty if there is none."""
    try:
        return f" ({Path(path).stat().st_size:,} bytes)"
    except OSError:
        return ""
