"""Decision trees as arrays: all rows descend all trees at once, one level per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps

INT64 = ir.DataType.INT64
TESTS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "NotEqual", "Member")
"""The test of a tree node, by the number of its mode."""


@dataclass(frozen=True)
class Trees:
    """Decision trees whose inner nodes and leaves have one numbering, inner nodes first.

    ``features``, ``splits``, ``modes`` and ``missing`` have one entry per inner node; ``missing``
    is True if NaN goes to the true side. ``successors`` are the nodes on the true and the false
    side; the successor of a leaf is the leaf itself, so that a row that has arrived stays.
    ``members`` are the sets of nodes that test membership, padded with NaN.
    """

    roots: np.ndarray
    features: np.ndarray
    splits: np.ndarray
    modes: np.ndarray
    missing: np.ndarray
    successors: tuple[np.ndarray, np.ndarray]
    members: np.ndarray | None = None

    @property
    def count(self) -> int:
        """The number of inner nodes."""
        return len(self.features)

    def leaves(self, m: Steps, x: Array) -> Array:
        """Return the leaf of each tree, from 0, for each row of ``x`` [N, features]: [N, trees]."""
        index = m.constant(self.roots.reshape(1, -1)).expand(x.shape[0], len(self.roots))
        for _ in range(self._depth(m)):
            index = self._descend(m, x, index)
        return index - self.count

    def _depth(self, m: Steps) -> int:
        """Return the number of levels; refuses trees with a cycle."""
        reached, steps = np.unique(self.roots), 0
        while (reached < self.count).any():
            reached, steps = np.unique([side[reached] for side in self.successors]), steps + 1
            if steps > self.count:
                raise m.cx.refuse("a tree has a cycle")
        return steps

    def _descend(self, m: Steps, x: Array, index: Array) -> Array:
        """Return the next node of each row in each tree; ``index`` has the current ones [N, trees].

        The test of a node depends on its mode. The tests of all modes are computed for all nodes,
        and each counts only for nodes of its mode.
        """
        feature = self._at(m, self.features, index, INT64)
        value = m.emit("GatherElements", (x, feature), feature.shape, axis=1)
        split = self._at(m, self.splits, index, x.dtype)
        tests_by_mode = [self._test(m, mode, value, split, index) for mode in sorted({*self.modes})]
        is_true = tests_by_mode[0]
        for is_true_in_mode in tests_by_mode[1:]:
            is_true = m.op("Or", is_true, is_true_in_mode)
        if self.missing.any():
            goes_true = self._at(m, self.missing, index, ir.DataType.BOOL)
            is_true = m.op("Or", is_true, m.op("And", m.op("IsNaN", value), goes_true))
        if_true, if_false = (m.constant(side).gather(index) for side in self.successors)
        return m.op("Where", is_true, if_true, if_false)

    def _test(self, m: Steps, mode: int, value: Array, split: Array, index: Array) -> Array:
        """Return the test results of nodes of this mode; False for nodes of other modes."""
        if TESTS[mode] == "Member":
            assert self.members is not None
            table = m.constant(self.members, value.dtype).gather(index)
            same = m.op("Equal", value.reshape(*value.shape, 1), table)
            answer = same.reduce("ReduceMax", 2)
        elif TESTS[mode] == "NotEqual":
            answer = m.op("Not", m.op("Equal", value, split))
        else:
            answer = m.op(TESTS[mode], value, split)
        if (self.modes == mode).all():
            return answer
        return m.op("And", answer, self._at(m, self.modes == mode, index, ir.DataType.BOOL))

    def _at(
        self, m: Steps, table: Sequence[float] | np.ndarray, index: Array, dtype: ir.DataType
    ) -> Array:
        """Return the entry of ``table``, which has inner nodes only, for each node in ``index``.

        A leaf gets 0, whose value does not matter: both its successors are the leaf.
        """
        filled = np.zeros(len(self.successors[0]))
        filled[: len(table)] = table
        return m.constant(filled, dtype).gather(index)


def aggregated(
    m: Steps,
    leaf: Array,
    weights: np.ndarray,
    has_weight: np.ndarray,
    mode: str,
    dtype: ir.DataType,
) -> Array:
    """Return the sum, average, minimum or maximum (``mode``) of leaf weights over trees.

    ``leaf`` [N, trees] has the leaf that each row reaches in each tree, ``weights`` [leaves,
    targets] its weights; the result is [N, targets]. Only weights marked in ``has_weight`` count. A
    target without any has the sum 0, the largest number as minimum, the lowest as maximum.
    """
    if mode in ("AVERAGE", "SUM"):
        total = (
            m.constant(np.where(has_weight, weights, 0), dtype).gather(leaf).reduce("ReduceSum", 1)
        )
        return total / m.size(leaf, 1) if mode == "AVERAGE" else total
    limit = float(np.finfo(dtype.numpy()).max) * (1 if mode == "MIN" else -1)
    op = "ReduceMin" if mode == "MIN" else "ReduceMax"
    return m.constant(np.where(has_weight, weights, limit), dtype).gather(leaf).reduce(op, 1)
