"""The sweep in a process of its own, so that a callable which never ends costs only itself."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple

from jax_surface import patience

TARGETS = ("host", "c")
"""Targets, beside ONNX, that callables are compiled for."""


class Task(NamedTuple):
    """A callable by its path, in the types of one kind, x32, x64 or narrow, or for a target."""

    path: str
    types: str


class Row(NamedTuple):
    """A verdict as text."""

    case: str
    kind: str
    why: str


def answered(tasks: list[Task]) -> Iterator[tuple[Task, list[Row]]]:
    """Each task with its rows; the last row says so if the process ended over it."""
    context = multiprocessing.get_context("spawn")
    left = list(tasks)
    while left:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, left), daemon=True)
        process.start()
        there.close()
        try:
            while left:
                rows: list[Row] = []
                while (message := _received(here, process)) is not None and message.kind != "end":
                    rows.append(message)
                if message is None:
                    rows.append(_ended(left[0], process.exitcode))
                yield left.pop(0), rows
                if message is None:
                    break
        finally:
            process.terminate()
            process.join()


def _received(here: Connection, process: multiprocessing.process.BaseProcess) -> Row | None:
    """The next row, None once the process has ended."""
    try:
        received: Row = here.recv()
    except EOFError:
        process.join()
        return None
    return received


def _ended(task: Task, code: int | None) -> Row:
    if code == -signal.SIGALRM:
        why = f"JAX itself computes for over {patience.SECONDS} s"
        return Row(task.types, "skipped", why)
    return Row(task.types, "failed", f"the process ended with code {code}")


def _work(there: Connection, tasks: list[Task]) -> None:
    """Send the rows of each task, then a row that ends it."""
    from jax_surface.surface import entries
    from jax_surface.sweep import verdicts_of

    warnings.simplefilter("ignore")
    found = {str(entry): entry for entry in entries()}
    for task in tasks:
        for verdict in verdicts_of(found[task.path], task.types):
            there.send(Row(verdict.case, verdict.kind, verdict.why))
        there.send(Row("", "end", ""))
