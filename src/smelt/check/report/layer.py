"""Choose the part of two graphs that a picture shows: one of the repeated modules, if there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from smelt.check.report.modules import Path, Tree

LEAST, MOST = 4, 90
"""The fewest and the most nodes of one side that a picture shows."""


class Part(NamedTuple):
    """A group, its path of names, and the numbers of its drawn nodes on both sides, in order."""

    path: Path
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def pattern(self) -> str:
        """The path with ``#`` for each number; layers of one network have the same."""
        return re.sub(r"\d+", "#", "/".join(self.path))

    @property
    def counts(self) -> tuple[int, int]:
        """How many nodes each side has."""
        return len(self.before), len(self.after)


def part_of(before: dict[str, Any], after: dict[str, Any]) -> Part:
    """Return the part of both graphs to draw.

    It is a member of the repeated modules in which most nodes changed. Without a repeated module of
    at most ``MOST`` nodes, it is the whole graph, or the group in which most nodes changed.
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
        most = changes.most_common(1)[0][0]
        return _typical([part for part in layers if part.pattern == most])
    if max(whole.counts) <= MOST or not drawable:
        return whole
    return max(drawable, key=lambda part: _changed(part, before))


def _typical(parts: Sequence[Part]) -> Part:
    """Return the first part with the most frequent node counts; of equal ones, those of the last.

    The first layer often holds nodes that all layers share, such as those of a mask.
    """
    usual = Counter(part.counts for part in reversed(parts)).most_common(1)[0][0]
    return next(part for part in parts if part.counts == usual)


def _changed(part: Part, before: dict[str, Any]) -> int:
    return sum("state" in before["nodes"][number] for number in part.before)


def _groups(trees: Sequence[Tree], path: Path) -> Iterator[tuple[Path, list[int]]]:
    """Yield each group's path and its nodes at any depth, the whole graph first.

    Nodes of inner graphs are left out: only the node that carries them is drawn.
    """
    own: list[int] = []
    inner: list[tuple[Path, list[int]]] = []
    for tree in trees:
        if isinstance(tree, int):
            own.append(tree)
        elif "node" in tree:
            own.append(tree["node"])
        elif "body" not in tree:
            found = list(_groups(tree["kids"], (*path, tree["name"])))
            own += found[0][1]
            inner += found
    yield path, own
    yield from inner
