"""Trees in arrays: all rows go down all trees at once, a level a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps

INT64 = ir.DataType.INT64
TESTS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "NotEqual", "Member")
"""What a node of a tree asks, by the number of its mode."""


@dataclass(frozen=True)
class Trees:
    """Nodes that ask, and leaves, in one numbering: leaves are behind the nodes.

    ``features``, ``splits``, ``modes`` and ``missing`` have an entry a node; ``missing`` says
    whether NaN leads to the true side. ``ways`` are where the true and the false side lead, and
    each leaf to itself. ``members`` are the sets of the nodes that ask for one, filled with NaN.
    """

    roots: np.ndarray
    features: np.ndarray
    splits: np.ndarray
    modes: np.ndarray
    missing: np.ndarray
    ways: tuple[np.ndarray, np.ndarray]
    members: np.ndarray | None = None

    @property
    def count(self) -> int:
        """How many nodes ask."""
        return len(self.features)

    def leaves(self, m: Steps, x: Array) -> Array:
        """The leaf of each tree for each row of ``x`` [N, features]: [N, trees], from 0."""
        place = m.constant(self.roots.reshape(1, -1)).expand(x.shape[0], len(self.roots))
        for _ in range(self._depth(m)):
            place = self._descend(m, x, place)
        return place - self.count

    def _depth(self, m: Steps) -> int:
        """The steps to the lowest leaf; refuses trees that never end."""
        reached, steps = np.unique(self.roots), 0
        while (reached < self.count).any():
            reached, steps = np.unique([way[reached] for way in self.ways]), steps + 1
            if steps > self.count:
                raise m.cx.refuse("a tree leads back to itself")
        return steps

    def _descend(self, m: Steps, x: Array, place: Array) -> Array:
        """One level down."""
        feature = self._at(m, self.features, place, INT64)
        value = m.emit("GatherElements", (x, feature), feature.shape, axis=1)
        split = self._at(m, self.splits, place, x.dtype)
        answers = [self._asked(m, mode, value, split, place) for mode in sorted({*self.modes})]
        yes = answers[0]
        for answer in answers[1:]:
            yes = m.op("Or", yes, answer)
        if self.missing.any():
            kept = self._at(m, self.missing, place, ir.DataType.BOOL)
            yes = m.op("Or", yes, m.op("And", m.op("IsNaN", value), kept))
        left, right = (m.constant(way).gather(place) for way in self.ways)
        return m.op("Where", yes, left, right)

    def _asked(self, m: Steps, mode: int, value: Array, split: Array, place: Array) -> Array:
        """Whether a node of this mode says yes; no for nodes of others."""
        if TESTS[mode] == "Member":
            assert self.members is not None
            table = m.constant(self.members, value.dtype).gather(place)
            same = m.op("Equal", value.reshape(*value.shape, 1), table)
            answer = same.reduce("ReduceMax", 2)
        elif TESTS[mode] == "NotEqual":
            answer = m.op("Not", m.op("Equal", value, split))
        else:
            answer = m.op(TESTS[mode], value, split)
        if (self.modes == mode).all():
            return answer
        return m.op("And", answer, self._at(m, self.modes == mode, place, ir.DataType.BOOL))

    def _at(
        self, m: Steps, table: Sequence[float] | np.ndarray, place: Array, dtype: ir.DataType
    ) -> Array:
        """The entry of each node; leaves have any."""
        filled = np.zeros(len(self.ways[0]))
        filled[: len(table)] = table
        return m.constant(filled, dtype).gather(place)


def aggregated(
    m: Steps, leaf: Array, shares: np.ndarray, told: np.ndarray, mode: str, dtype: ir.DataType
) -> Array:
    """What the trees say of each target: the ``mode`` of ``shares`` [leaves, targets] over trees.

    ``leaf`` is [N, trees]. Only what ``told`` marks counts: a target of which no tree tells has the
    sum 0, and the largest or lowest number as least and greatest.
    """
    if mode in ("AVERAGE", "SUM"):
        total = m.constant(np.where(told, shares, 0), dtype).gather(leaf).reduce("ReduceSum", 1)
        return total / int(str(leaf.shape[1])) if mode == "AVERAGE" else total
    limit = float(np.finfo(dtype.numpy()).max) * (1 if mode == "MIN" else -1)
    op = "ReduceMin" if mode == "MIN" else "ReduceMax"
    return m.constant(np.where(told, shares, limit), dtype).gather(leaf).reduce(op, 1)
