"""Every node of a model by operator, so that a pass looks only at nodes that concern it."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir import scope

Key = tuple[str, str]


class NodeIndex:
    """What one walk over a model finds. Valid until the model is edited.

    ``opsets`` maps each graph, subgraphs and functions included, to its ONNX opset; ``count`` is
    the number of nodes.
    """

    def __init__(self, model: ir.Model) -> None:
        self.opsets: dict[ir.Graph, int] = {}
        self.count = 0
        self._by_key: dict[Key, list[tuple[int, ir.Node]]] = {}
        for root, imports in (
            (model.graph, model.opset_imports),
            *((f.graph, f.opset_imports) for f in model.functions.values()),
        ):
            self._add(root, imports.get("", 0))

    @property
    def graphs(self) -> list[ir.Graph]:
        """All graphs, outer before inner, those of functions last."""
        return list(self.opsets)

    def has(self, *op_types: str) -> bool:
        """True if a node of ONNX is one of ``op_types``."""
        return any(("", op_type) in self._by_key for op_type in op_types)

    @property
    def operators(self) -> set[Key]:
        """The ``(domain, op_type)`` of all nodes."""
        return set(self._by_key)

    def nodes(self, keys: Iterable[Key]) -> list[ir.Node]:
        """The nodes with one of ``keys`` as ``(domain, op_type)``, in the order of the model."""
        found = [item for key in dict.fromkeys(keys) for item in self._by_key.get(key, ())]
        found.sort(key=lambda item: item[0])
        return [node for _, node in found]

    def _add(self, root: ir.Graph, opset: int) -> None:
        pending = [root]
        while pending:
            graph = pending.pop()
            self.opsets[graph] = opset
            inner: list[ir.Graph] = []
            for node in graph:
                key = domain, op_type = node.domain, node.op_type
                self._by_key.setdefault(key, []).append((self.count, node))
                self.count += 1
                if domain or op_type in scope.GRAPH_CARRIERS:
                    inner += scope.subgraphs(node)
            pending += reversed(inner)
