"""A recording in the trace event format of Chrome, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smelt.spans.record import Recorder, Span

MICRO = 1e6
"""Microseconds of a second: the format counts in them."""


def chrome_trace(recorder: Recorder, **facts: str) -> dict[str, Any]:
    """The document to be written as JSON: a complete event a span, and the names of threads.

    Times are in microseconds since the recording began. ``facts`` are about all of it, for
    instance the command.
    """
    spans = [each for _, each in recorder.walk()]
    return {
        "traceEvents": [*_names(spans), *(_event(each, recorder.origin) for each in spans)],
        "displayTimeUnit": "ms",
        "otherData": {**facts, "began": recorder.time},
    }


def _names(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """What viewers call the processes and threads."""
    for process in dict.fromkeys(each.process for each in spans):
        yield _metadata("process_name", process, 0, "smelt")
    for process, thread in dict.fromkeys((each.process, each.thread) for each in spans):
        yield _metadata("thread_name", process, thread, "main" if process == thread else "worker")


def _metadata(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _event(each: Span, origin: float) -> dict[str, Any]:
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
