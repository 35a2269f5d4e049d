"""A match in progress: its bindings, its nodes, and the check that it is closed."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known, unknown_part
from smelt.ir.walk import reader_outside

NESTED = 8
"""Maximum number of nested branches out of which a pattern reaches."""


class MatchState:
    """Bindings and nodes of a match in progress, with an undo log for backtracking."""

    def __init__(
        self,
        constants: Constants,
        graph: ir.Graph | None,
        around: Mapping[ir.Graph, ir.Graph] | None = None,
        inner_names: frozenset[str] = frozenset(),
    ) -> None:
        """Start a match in ``graph``; ``around`` maps a branch to the graph that contains its
        If.

        ``closed`` are the nodes that may have no readers outside, ``_trail`` the names bound so
        far, in order. ``_near`` is the number of matched nodes at the noted near miss.
        """
        self.constants = constants
        self.graph = graph
        self.around = around or {}
        self.inner_names = inner_names
        self.bindings: dict[str, ir.Value | None] = {}
        self.nodes: list[ir.Node] = []
        self.closed: list[ir.Node] = []
        self.near_miss: str | None = None
        self._near = 1
        self._trail: list[str] = []

    def miss(self, reason: str) -> None:
        """Note why the match failed, unless an earlier attempt matched more nodes."""
        if len(self.nodes) > self._near:
            self._near, self.near_miss = len(self.nodes), reason

    def sees(self, graph: ir.Graph | None) -> bool:
        """True for the graph of the root, and for graphs that contain it through nested Ifs."""
        current = self.graph
        for _ in range(NESTED):
            if current is graph or current is None:
                break
            current = self.around.get(current)
        return current is graph and current is not None

    def bind(self, name: str, value: ir.Value | None) -> bool:
        """Bind ``name`` to ``value``; False if it is bound to another value."""
        if name in self.bindings:
            return self.bindings[name] is value
        self.bindings[name] = value
        self._trail.append(name)
        return True

    def mark(self) -> tuple[int, int, int]:
        """Return the current state, for ``undo``: numbers of bindings, nodes and closed nodes."""
        return len(self._trail), len(self.nodes), len(self.closed)

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Restore the state of ``mark``."""
        names, nodes, closed = mark
        for name in self._trail[names:]:
            del self.bindings[name]
        del self._trail[names:]
        del self.nodes[nodes:]
        del self.closed[closed:]

    def is_closed(self) -> bool:
        """True if nothing outside the match reads an interior result that is not shared.

        Refuses an interior result that is also bound to a variable, because the replacement may
        read the variable: in ``m - m``, one ``m`` may be interior and the other any value. Names in
        ``inner_names`` are no variables: the pattern gives them to results of its nodes. Refuses
        nodes with unknown features of their operator, too.
        """
        for node in self.nodes:
            if not is_known(node):
                self.miss(f"a {node.op_type} has {unknown_part(node)}, which is not known")
                return False
        if not self.closed:
            return True
        members = set(self.nodes)
        inner = self.inner_names
        operands = {value for name, value in self.bindings.items() if name not in inner}
        for node in self.closed:
            for value in node.outputs:
                if value in operands:
                    self.miss("an inner result is an operand, too")
                    return False
                if value.is_graph_output() or reader_outside(value, members) is not None:
                    self.miss("an inner result is read elsewhere")
                    return False
        return True
