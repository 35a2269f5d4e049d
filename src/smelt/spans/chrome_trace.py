"""Write a recording in Chrome's trace event format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smelt.spans.record import Recorder, Span

MICRO = 1e6
"""Microseconds in a second, the unit of the format."""


def chrome_trace(recorder: Recorder, **facts: str) -> dict[str, Any]:
    """Return the JSON document: one complete event for each span, and the names of processes and
    threads.

    Times are in microseconds since the recording began. ``facts`` describe the whole recording,
    such as the command.
    """
    spans = [each for _, each in recorder.walk()]
    return {
        "traceEvents": [*_names(spans), *(_event(each, recorder.origin) for each in spans)],
        "displayTimeUnit": "ms",
        "otherData": {**facts, "began": recorder.time},
    }


def _names(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """Yield events that name the processes and threads for viewers."""
    for process in dict.fromkeys(each.process for each in spans):
        yield _metadata("process_name", process, 0, "smelt")
    for process, thread in dict.fromkeys((each.process, each.thread) for each in spans):
        yield _metadata("thread_name", process, thread, "main" if process == thread else "worker")


def _metadata(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _event(each: Span, origin: float) -> dict[str, Any]:
    """Return the complete event ("X") of one span."""
    return {
        "name": each.name,
        "cat": each.category,
        "ph": "X",
        "ts": (each.start - origin) * MICRO,
        "dur": each.seconds * MICRO,
        "pid": each.process,
        "tid": each.thread,
        "args": {**each.args, "cpu_ms": each.cpu * 1000},
    }
