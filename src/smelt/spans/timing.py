"""Sum the times of a recording by phase and pass: spans of the same name are added up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from smelt.spans.record import Span

TRANSPARENT = frozenset({"fixpoint"})
"""Spans that only group others: their children count as children of the enclosing span."""


@dataclass
class Total:
    """The sum of ``runs`` spans called ``name``: wall and CPU time in seconds.

    ``nodes`` are the node counts before the first run and after the last, None if unknown.
    ``parts`` are the totals of inner spans, longest first.
    """

    name: str
    category: str
    seconds: float = 0.0
    cpu: float = 0.0
    runs: int = 0
    nodes: tuple[int, int] | None = None
    parts: list[Total] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the total and its parts as JSON data."""
        return {
            "name": self.name,
            "category": self.category,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu,
            "runs": self.runs,
            "nodes": list(self.nodes) if self.nodes else None,
            "parts": [part.to_json() for part in self.parts],
        }


def totals(spans: Iterable[Span]) -> list[Total]:
    """Return the totals of ``spans``, longest first.

    Runs of a pass with different options count separately.
    """
    groups: dict[tuple[str, str], list[Span]] = {}
    for span in _without_groups(spans):
        name = span.args["text"] if span.category == "pass" else span.name
        groups.setdefault((name, span.category), []).append(span)
    sums = [_total(*key, members) for key, members in groups.items()]
    return sorted(sums, key=lambda total: -total.seconds)


def _total(name: str, category: str, spans: list[Span]) -> Total:
    """Return the total of spans of one name and category."""
    return Total(
        name,
        category,
        sum(span.seconds for span in spans),
        sum(span.cpu for span in spans),
        len(spans),
        _nodes(spans),
        totals(inner for span in spans for inner in span.children),
    )


def _nodes(spans: list[Span]) -> tuple[int, int] | None:
    """Return the node counts before the first span and after the last; None if one is unknown."""
    first, last = spans[0].args, spans[-1].args
    before = first.get("nodes_before", first.get("nodes"))
    after = last.get("nodes_after", last.get("nodes"))
    return None if before is None or after is None else (before, after)


def _without_groups(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield ``spans``, with the children of each ``TRANSPARENT`` span in place of that span."""
    for span in spans:
        if span.name in TRANSPARENT:
            yield from _without_groups(span.children)
        else:
            yield span
