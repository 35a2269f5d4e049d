"""Choose the type of the nodes that may have either, so that the graph has the fewest casts.

A minimum cut separates the nodes in float32 from those in half. The cut costs one Cast for each
value that both sides read or write, and less for a node on the side that does not suit it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

CAST = 100
"""The cost of one Cast; preferences of nodes are fractions of it."""

UNBOUNDED = 1 << 40
"""The cost of a choice that must not be made."""


@dataclass
class Border:
    """Nodes with their preferences, and the values between them.

    ``float_cost`` and ``half_cost`` are what a node costs on each side. ``values`` has the writer
    of each value, None for a constant or a value that costs nothing, and its readers.
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
        """Return the nodes on the half side of a minimum cut."""
        network = _Network()
        for node, cost in self.half_cost.items():
            network.add("float", node, cost)
            network.add(node, "half", self.float_cost[node])
        for index, (writer, readers) in enumerate(self.values):
            network.add(writer, ("down", index), CAST)
            network.add(("up", index), writer, CAST)
            for reader in readers:
                network.add(("down", index), reader, UNBOUNDED)
                network.add(reader, ("up", index), UNBOUNDED)
        in_float = network.side_of("float", "half")
        return {node for node in self.half_cost if node not in in_float}


class _Network:
    """A flow network; ``side_of`` finds a minimum cut by Dinic's algorithm."""

    def __init__(self) -> None:
        """Begin without edges; edge ``e`` and its reverse ``e ^ 1`` stand side by side."""
        self.edges: dict[Hashable, list[int]] = {}
        self.target: list[Hashable] = []
        self.room: list[int] = []

    def add(self, source: Hashable, target: Hashable, capacity: int) -> None:
        """Add an edge; one without capacity is left out."""
        if capacity <= 0 or source == target:
            return
        for start, end, room in ((source, target, capacity), (target, source, 0)):
            self.edges.setdefault(start, []).append(len(self.target))
            self.target.append(end)
            self.room.append(room)

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
        """Return the distance of each node that still can be reached."""
        levels = {source: 0}
        pending = deque([source])
        while pending:
            node = pending.popleft()
            for edge in self.edges.get(node, ()):
                end = self.target[edge]
                if self.room[edge] and end not in levels:
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
        """Send flow along one path of growing levels; False if there is none."""
        path: list[int] = []
        node = source
        while node != sink:
            edges = self.edges.get(node, [])
            while position[node] < len(edges):
                edge = edges[position[node]]
                end = self.target[edge]
                if self.room[edge] and levels.get(end, -1) == levels[node] + 1:
                    path.append(edge)
                    node = end
                    break
                position[node] += 1
            else:
                if not path:
                    return False
                node = self.target[path.pop() ^ 1]
                position[node] += 1
        flow = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= flow
            self.room[edge ^ 1] += flow
        return True
