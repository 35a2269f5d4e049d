"""Describe where time went as data for a chart: spans with depth, without very short ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smelt.check.report.shown import shown
from smelt.spans import Recorder, Span
from smelt.spans.timing import Total, totals

SHARE = 1 / 2000
"""Spans shorter than this share of the whole are not drawn."""

ROWS = 40
"""How many totals are listed, the longest first."""


def spans_of(recorder: Recorder) -> dict[str, Any] | None:
    """Return the recording as ``spans`` and ``totals``; None if nothing was recorded.

    A span is ``[name, start, seconds, depth, category]``, with its start in seconds from the first
    span; totals sum the spans of one name.
    """
    if not recorder.spans:
        return None
    begin = recorder.spans[0].start
    end = max(each.start + each.seconds for each in recorder.spans)
    least = (end - begin) * SHARE
    drawn = [
        [_name(each), each.start - begin, each.seconds, depth, each.category]
        for depth, each in recorder.walk()
        if each.seconds >= least
    ]
    return {"seconds": end - begin, "spans": drawn, "totals": _rows(totals(recorder.spans))}


def _name(span: Span) -> str:
    return shown(str(span.args.get("text", span.name)), 80)


def _rows(found: Iterable[Total]) -> list[list[Any]]:
    """Return ``[name, runs, seconds, CPU seconds, category]``, the longest first."""
    added: dict[tuple[str, str], Total] = {}
    pending = list(found)
    while pending:
        for each in pending:
            total = added.setdefault((each.name, each.category), Total(each.name, each.category))
            total.seconds += each.seconds
            total.cpu += each.cpu
            total.runs += each.runs
        pending = [part for each in pending for part in each.parts]
    longest = sorted(added.values(), key=lambda total: -total.seconds)[:ROWS]
    return [[shown(t.name, 80), t.runs, t.seconds, t.cpu, t.category] for t in longest]
