"""All nodes of a model by operator, so that a pass visits only the nodes it handles."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder

Key = tuple[str, str]


class NodeIndex:
    """The result of one walk over a model; valid until the model is edited.

    ``opsets`` maps each graph, subgraphs and functions included, to its ONNX opset; ``count`` is
    the number of nodes. ``around`` maps each branch of an If to the graph that contains the If,
    whose nodes run as often as the If.
    """

    def __init__(self, model: ir.Model) -> None:
        """Walk over the main graph and the functions of ``model``.

        ``opsets`` has the opset of each graph, ``around`` the graph around a branch of an If,
        ``_by_key`` the nodes of each operator with their numbers.
        """
        self.opsets: dict[ir.Graph, int] = {}
        self.around: dict[ir.Graph, ir.Graph] = {}
        self.count = 0
        self._by_key: dict[Key, dict[ir.Node, int]] = {}
        self._operators: frozenset[Key] | None = None
        for root, imports in (
            (model.graph, model.opset_imports),
            *((f.graph, f.opset_imports) for f in model.functions.values()),
        ):
            self._add(root, imports.get("", 0))

    @property
    def graphs(self) -> list[ir.Graph]:
        """Return all graphs, outer before inner, functions last."""
        return list(self.opsets)

    def has(self, *op_types: str) -> bool:
        """True if the model has a node of one of the ONNX operators ``op_types``."""
        return any(("", op_type) in self._by_key for op_type in op_types)

    @property
    def operators(self) -> frozenset[Key]:
        """Return the ``(domain, op_type)`` of all nodes."""
        if self._operators is None:
            self._operators = frozenset(self._by_key)
        return self._operators

    def nodes(self, keys: Iterable[Key]) -> list[ir.Node]:
        """Return the nodes with one of ``keys`` as ``(domain, op_type)``, in the order of the
        model.

        Nodes that rewrites made at one place are ordered by ``keys``, then by creation.
        """
        numbered = [
            node_and_number
            for key in dict.fromkeys(keys)
            for node_and_number in self._numbered_nodes(key).items()
        ]
        numbered.sort(key=itemgetter(1))
        return [node for node, _ in numbered]

    def follow(self, builders: Iterable[Builder], removed: Iterable[ir.Node]) -> bool:
        """Update the index after edits: add the nodes of ``builders``, drop those of ``removed``.

        Returns False if the index cannot follow and must be made anew: a graph was added or
        removed, or a builder appended its nodes to a graph.
        """
        self._operators = None
        for builder in builders:
            if not builder.created:
                continue
            if builder.before is None:
                return False
            # New nodes share the number of the node before which they were inserted.
            place = self._numbered_nodes(_key(builder.before)).get(builder.before)
            if place is None or any(map(scope.carries_graphs, builder.created)):
                return False
            for node in builder.created:
                self._by_key.setdefault(_key(node), {})[node] = place
                self.count += 1
        for node in removed:
            key = _key(node)
            if scope.carries_graphs(node) or self._numbered_nodes(key).pop(node, None) is None:
                return False
            self.count -= 1
            if not self._by_key[key]:
                del self._by_key[key]
        return True

    def _numbered_nodes(self, key: Key) -> dict[ir.Node, int]:
        """Return the nodes with ``key``, each with its number."""
        return self._by_key.get(key) or {}

    def _add(self, root: ir.Graph, opset: int) -> None:
        """Number the nodes of ``root`` and of all graphs below it, outer graphs first, and add them
        to the index."""
        pending = [root]
        by_key, carriers, count = self._by_key, scope.GRAPH_CARRIERS, self.count
        while pending:
            graph = pending.pop()
            self.opsets[graph] = opset
            inner: list[ir.Graph] = []
            for node in graph:
                key = domain, op_type = node.domain, node.op_type
                nodes = by_key.get(key)
                if nodes is None:
                    nodes = by_key[key] = {}
                nodes[node] = count
                count += 1
                if domain or op_type in carriers:
                    below = list(scope.subgraphs(node))
                    inner += below
                    if op_type == "If" and not domain:
                        self.around.update(dict.fromkeys(below, graph))
            pending += reversed(inner)
        self.count = count


def _key(node: ir.Node) -> Key:
    """Return the key of ``node`` in the index."""
    return node.domain, node.op_type
