"""Choose the part of two graphs that a picture shows: one of the repeated layers, if
there are any.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from smelt.check.report.modules import Path, Tree

LEAST, MOST = 4, 90
"""The fewest and the most nodes of one side that a picture shows."""


class Part(NamedTuple):
    """A group of nodes: its path, and the numbers of its nodes before and after the passes, in
    order.
    """

    path: Path
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def pattern(self) -> str:
        """The path with ``#`` for each number, which the repeated layers of a network share."""
        return re.sub(r"\d+", "#", "/".join(self.path))

    @property
    def counts(self) -> tuple[int, int]:
        """How many nodes the part has before and after."""
        return len(self.before), len(self.after)


def part_of(before: dict[str, Any], after: dict[str, Any]) -> Part:
    """Return the part of both graphs to draw.

    This is one of the repeated groups (paths that differ in numbers only) in which most nodes
    changed. If no repeated group has ``LEAST`` to ``MOST`` nodes, a graph of at most ``MOST`` nodes
    is drawn whole. Of a larger graph, the group of that size in which most nodes changed is drawn.
    """
    sides = [dict(_groups(side["tree"], ())) for side in (before, after)]
    parts = [
        Part(path, tuple(sorted(numbers)), tuple(sorted(sides[1].get(path, ()))))
        for path, numbers in sides[0].items()
    ]
    whole = next((part for part in parts if not part.path), Part((), (), ()))
    drawable = [p for p in parts if LEAST <= max(p.counts) <= MOST and p.path]
    repeated = Counter(part.pattern for part in drawable)
    layers = [part for part in drawable if repeated[part.pattern] > 1]
    if layers:
        changes = Counter[str]()
        for part in layers:
            changes[part.pattern] += _changed(part, before)
        most_changed = changes.most_common(1)[0][0]
        return _typical_part([part for part in layers if part.pattern == most_changed])
    if max(whole.counts) <= MOST or not drawable:
        return whole
    return max(drawable, key=lambda part: _changed(part, before))


def _typical_part(parts: Sequence[Part]) -> Part:
    """Return the first part that has the most frequent pair of node counts.

    If two pairs are equally frequent, the pair of the later part wins: the first layer often holds
    nodes that all layers share, such as those of a mask.
    """
    most_frequent = Counter(part.counts for part in reversed(parts)).most_common(1)[0][0]
    return next(part for part in parts if part.counts == most_frequent)


def _changed(part: Part, before: dict[str, Any]) -> int:
    """Return how many nodes of ``part`` have a state other than unchanged."""
    return sum("state" in before["nodes"][number] for number in part.before)


def _groups(trees: Sequence[Tree], path: Path) -> Iterator[tuple[Path, list[int]]]:
    """Yield each group's path and the numbers of its nodes at any depth, the whole graph first.

    Nodes of inner graphs are left out: only the node that has the inner graphs is drawn.
    """
    own: list[int] = []
    inner: list[tuple[Path, list[int]]] = []
    for tree in trees:
        if isinstance(tree, int):
            own.append(tree)
        elif "node" in tree:
            own.append(tree["node"])
        elif "body" not in tree:
            subgroups = list(_groups(tree["kids"], (*path, tree["name"])))
            own += subgroups[0][1]
            inner += subgroups
    yield path, own
    yield from inner
