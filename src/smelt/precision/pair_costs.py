"""Costs of a choice between two sides for each node, reduced before the minimum cut.

A node costs a number on either side. A pair of nodes costs a number if the first is on the float
side and the second on the half side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

FLOAT, HALF = 0, 1
"""The two sides, as indices into the costs of a node."""


class PairCosts:
    """The costs of nodes (``alone``) and of pairs (``across``).

    ``reduce`` eliminates nodes with at most two neighbours: for each choice of the neighbours, the
    cheaper side of the node is known, and its cost becomes a cost of the neighbours. ``restore``
    then chooses the sides of the eliminated nodes.
    """

    def __init__(self) -> None:
        """Begin without nodes."""
        self.alone: dict[Hashable, list[int]] = {}
        self.across: dict[Hashable, dict[Hashable, int]] = {}
        self.removed: list[tuple[Hashable, list[int], list[tuple[Hashable, int, int]]]] = []

    def add_node(self, node: Hashable, in_float: int = 0, in_half: int = 0) -> None:
        """Add the costs of ``node`` on its own."""
        costs = self.alone.setdefault(node, [0, 0])
        costs[FLOAT] += in_float
        costs[HALF] += in_half
        self.across.setdefault(node, {})

    def add_pair(self, in_float: Hashable, in_half: Hashable, cost: int) -> None:
        """Add the cost of the first node in float32 while the second is in half."""
        if in_float == in_half:
            return
        for node, other, more in ((in_float, in_half, cost), (in_half, in_float, 0)):
            self.add_node(node)
            self.across[node][other] = self.across[node].get(other, 0) + more

    def pairs(self) -> Iterator[tuple[Hashable, Hashable, int]]:
        """Yield each pair with its cost if the first is in float32 and the second in half."""
        for node, others in self.across.items():
            for other, cost in others.items():
                yield node, other, cost

    def reduce(self) -> None:
        """Remove nodes until each that is left has three neighbours or more."""
        pending = [node for node, others in self.across.items() if len(others) <= 2]
        while pending:
            node = pending.pop()
            if node in self.across and len(self.across[node]) <= 2:
                pending.extend(self._remove(node))

    def _remove(self, node: Hashable) -> list[Hashable]:
        """Eliminate ``node``: add the cost of its cheaper side to its neighbours, and return them.

        With two neighbours, this cost is a table m[first][second] over their sides. As a minimum
        over the sides of ``node``, it satisfies m[F][F] + m[H][H] <= m[F][H] + m[H][F], so it is a
        sum of a cost of each neighbour and of a cost >= 0 of the pair, up to a constant.
        """
        others = self.across.pop(node)
        near = [(other, cost, self.across[other].pop(node)) for other, cost in others.items()]
        self.removed.append((node, self.alone.pop(node), near))
        if len(near) == 1:
            self._add(near[0][0], self._least([FLOAT]), self._least([HALF]))
        elif near:
            (first, *_), (second, *_) = near
            float_float, float_half = self._least([FLOAT, FLOAT]), self._least([FLOAT, HALF])
            half_float, half_half = self._least([HALF, FLOAT]), self._least([HALF, HALF])
            self._add(first, float_float, half_float)
            self._add(second, half_float, half_half)
            self.add_pair(first, second, float_half + half_float - float_float - half_half)
        return list(others)

    def _add(self, node: Hashable, in_float: int, in_half: int) -> None:
        """Add both costs to ``node``, less the smaller one, which any choice pays."""
        least = min(in_float, in_half)
        self.add_node(node, in_float - least, in_half - least)

    def _least(self, sides: list[int]) -> int:
        """Return the cost of the cheaper side of the node removed last, with its neighbours on
        ``sides``."""
        return min(self._costs(len(self.removed) - 1, sides))

    def _costs(self, index: int, sides: list[int]) -> tuple[int, int]:
        """Return the costs in float32 and in half of removed node ``index``, with its neighbours on
        ``sides``: its own cost, and those of its pairs."""
        _, alone, near = self.removed[index]
        in_float, in_half = alone
        for (_, node_in_float, node_in_half), side in zip(near, sides, strict=True):
            in_float += node_in_float if side == HALF else 0
            in_half += node_in_half if side == FLOAT else 0
        return in_float, in_half

    def restore(self, in_float: set[Hashable]) -> set[Hashable]:
        """Return all nodes in float32, given the nodes ``in_float`` among those that remained.

        Removed nodes get their cheaper side, the last removed first, because its neighbours are
        decided by then.
        """
        chosen = set(in_float)
        for index in reversed(range(len(self.removed))):
            node, _, near = self.removed[index]
            sides = [FLOAT if other in chosen else HALF for other, *_ in near]
            as_float, as_half = self._costs(index, sides)
            if as_float < as_half:
                chosen.add(node)
        return chosen
