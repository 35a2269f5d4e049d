"""Describe where time was spent, as data for a chart: spans of time with their nesting depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smelt.check.report.shown import shown
from smelt.spans import Recorder, Span
from smelt.spans.timing import Total, totals

SHARE = 1 / 2000
"""Spans shorter than this share of the whole duration are not drawn."""

ROWS = 40
"""The most totals that are listed, the longest first."""


def spans_of(recorder: Recorder) -> dict[str, Any] | None:
    """Return the recording as ``spans`` and ``totals``; None if nothing was recorded.

    A span is ``[name, start, seconds, depth, category]``, with its start in seconds after the first
    span's; totals sum the spans of equal name and category.
    """
    if not recorder.spans:
        return None
    begin = recorder.spans[0].start
    end = max(span.start + span.seconds for span in recorder.spans)
    shortest = (end - begin) * SHARE
    drawn = [
        [_name(span), span.start - begin, span.seconds, depth, span.category]
        for depth, span in recorder.walk()
        if span.seconds >= shortest
    ]
    return {"seconds": end - begin, "spans": drawn, "totals": _rows(totals(recorder.spans))}


def _name(span: Span) -> str:
    """Return the text of a span, or else its name."""
    return shown(str(span.args.get("text", span.name)), 80)


def _rows(roots: Iterable[Total]) -> list[list[Any]]:
    """Return ``[name, runs, seconds, CPU seconds, category]`` of the ``ROWS`` longest totals.

    Totals of equal name and category are added, at any depth.
    """
    sums: dict[tuple[str, str], Total] = {}
    pending = list(roots)
    while pending:
        for part in pending:
            total = sums.setdefault((part.name, part.category), Total(part.name, part.category))
            total.seconds += part.seconds
            total.cpu += part.cpu
            total.runs += part.runs
        pending = [child for part in pending for child in part.parts]
    longest = sorted(sums.values(), key=lambda total: -total.seconds)[:ROWS]
    return [[shown(t.name, 80), t.runs, t.seconds, t.cpu, t.category] for t in longest]
