"""Choose float32 or half for each node that may have either type, so that casts are few.

A minimum cut of a flow network separates the nodes in float32 from the nodes in half. It costs a
Cast for each value that crosses the cut, and for each node the cost of its type, usually less than
a Cast. Nodes with at most two neighbours are eliminated before the cut, which makes the time for a
chain linear.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from smelt.precision.pair_costs import PairCosts

CAST = 100
"""The cost of one Cast; preferences of nodes are fractions of it."""

UNBOUNDED = 1 << 40
"""The cost of a choice that must not be made."""


@dataclass
class Border:
    """The problem: nodes with the cost of each type, and the values between nodes.

    ``float_cost`` and ``half_cost`` are the cost of each node in float32 and in half. ``values``
    has the producer and the readers of each value.
    """

    float_cost: dict[Hashable, int] = field(default_factory=dict)
    half_cost: dict[Hashable, int] = field(default_factory=dict)
    values: list[tuple[Hashable, tuple[Hashable, ...]]] = field(default_factory=list)

    def add(self, node: Hashable, *, in_float: int = 0, in_half: int = 0) -> None:
        """Add ``node`` with its cost in float32 and in half."""
        self.float_cost[node], self.half_cost[node] = in_float, in_half

    def connect(self, writer: Hashable, readers: Iterable[Hashable]) -> None:
        """Add a value that ``writer`` computes and ``readers`` read."""
        self.values.append((writer, tuple(readers)))

    def nodes_in_half(self) -> set[Hashable]:
        """Return the nodes on the half side of a minimum cut.

        One Cast serves all readers of a value. So a value with several readers gets two auxiliary
        nodes: "down" costs a Cast if the producer is in float32 and any reader in half, and "up" if
        the producer is in half and any reader in float32.
        """
        costs = PairCosts()
        for node, cost in self.half_cost.items():
            costs.add_node(node, self.float_cost[node], cost)
        for index, (writer, readers) in enumerate(self.values):
            if len(set(readers)) == 1:
                costs.add_pair(writer, readers[0], CAST)
                costs.add_pair(readers[0], writer, CAST)
                continue
            costs.add_pair(writer, ("down", index), CAST)
            costs.add_pair(("up", index), writer, CAST)
            for reader in readers:
                costs.add_pair(("down", index), reader, UNBOUNDED)
                costs.add_pair(reader, ("up", index), UNBOUNDED)
        costs.reduce()
        in_float = costs.restore(_cheapest_in_float(costs))
        return {node for node in self.half_cost if node not in in_float}


def _cheapest_in_float(costs: PairCosts) -> set[Hashable]:
    """Return the nodes in float32 of a cheapest choice, by a minimum cut.

    "float" is the source of the flow network, "half" the sink. An edge costs its capacity if it
    leads from the float side to the half side. So the edge from the source to a node has the cost
    of the node in half, and the edge from the node to the sink its cost in float32.
    """
    network = _Network()
    for node, (as_float, as_half) in costs.alone.items():
        network.add("float", node, as_half)
        network.add(node, "half", as_float)
    for in_float, in_half, cost in costs.pairs():
        network.add(in_float, in_half, cost)
    return set(network.side_of("float", "half"))


class _Network:
    """A flow network; ``side_of`` finds a minimum cut by Dinic's algorithm."""

    def __init__(self) -> None:
        """Begin without edges; ``residual`` has the remaining capacity of each edge.

        The reverse of edge ``e`` is edge ``e ^ 1``.
        """
        self.edges: dict[Hashable, list[int]] = {}
        self.target: list[Hashable] = []
        self.residual: list[int] = []

    def add(self, source: Hashable, target: Hashable, capacity: int) -> None:
        """Add an edge; an edge without capacity is left out."""
        if capacity <= 0 or source == target:
            return
        for start, end, residual in ((source, target, capacity), (target, source, 0)):
            self.edges.setdefault(start, []).append(len(self.target))
            self.target.append(end)
            self.residual.append(residual)

    def side_of(self, source: Hashable, sink: Hashable) -> Mapping[Hashable, int]:
        """Return the nodes on the side of ``source`` of a minimum cut."""
        while True:
            levels = self._levels(source)
            if sink not in levels:
                return levels
            position = dict.fromkeys(levels, 0)
            while self._push(source, sink, levels, position):
                pass

    def _levels(self, source: Hashable) -> dict[Hashable, int]:
        """Return the distance from ``source`` of each node that edges with capacity reach."""
        levels = {source: 0}
        pending = deque([source])
        while pending:
            node = pending.popleft()
            for edge in self.edges.get(node, ()):
                end = self.target[edge]
                if self.residual[edge] and end not in levels:
                    levels[end] = levels[node] + 1
                    pending.append(end)
        return levels

    def _push(
        self,
        source: Hashable,
        sink: Hashable,
        levels: Mapping[Hashable, int],
        position: dict[Hashable, int],
    ) -> bool:
        """Send flow along one path whose levels grow by 1; False if there is no such path.

        ``position`` has the next edge to try at each node. An edge that failed is not tried again
        while the levels stay the same.
        """
        path: list[int] = []
        node = source
        while node != sink:
            edges = self.edges.get(node, [])
            while position[node] < len(edges):
                edge = edges[position[node]]
                end = self.target[edge]
                if self.residual[edge] and levels.get(end, -1) == levels[node] + 1:
                    path.append(edge)
                    node = end
                    break
                position[node] += 1
            else:
                if not path:
                    return False
                node = self.target[path.pop() ^ 1]
                position[node] += 1
        flow = min(self.residual[edge] for edge in path)
        for edge in path:
            self.residual[edge] -= flow
            self.residual[edge ^ 1] += flow
        return True
