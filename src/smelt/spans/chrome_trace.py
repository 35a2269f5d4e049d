"""Write a recording in Chrome's trace event format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smelt.spans.record import Recorder, Span

MICRO = 1e6
"""Microseconds in a second, the unit of the format."""


def chrome_trace(recorder: Recorder, **facts: str) -> dict[str, Any]:
    """Return the JSON document: an event for each span, and the names of processes and threads.

    Times are in microseconds since the recording began. ``facts`` describe the whole recording,
    such as the command.
    """
    spans = [span for _, span in recorder.walk()]
    return {
        "traceEvents": [*_names(spans), *(_event(span, recorder.origin) for span in spans)],
        "displayTimeUnit": "ms",
        "otherData": {**facts, "began": recorder.time},
    }


def _names(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """Yield events that name the processes and threads for viewers."""
    for process in dict.fromkeys(span.process for span in spans):
        yield _metadata("process_name", process, 0, "smelt")
    for process, thread in dict.fromkeys((span.process, span.thread) for span in spans):
        yield _metadata("thread_name", process, thread, "main" if process == thread else "worker")


def _metadata(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """Return the metadata event ("M") that gives a process or thread its ``name``."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _event(span: Span, origin: float) -> dict[str, Any]:
    """Return the complete event ("X") of one span."""
    return {
        "name": span.name,
        "cat": span.category,
        "ph": "X",
        "ts": (span.start - origin) * MICRO,
        "dur": span.seconds * MICRO,
        "pid": span.process,
        "tid": span.thread,
        "args": {**span.args, "cpu_ms": span.cpu * 1000},
    }
