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
            for graph in scope.graphs_below(root):
                self._add(graph, imports.get("", 0))

    def nodes(self, keys: Iterable[Key]) -> list[ir.Node]:
        """The nodes with one of ``keys`` as ``(domain, op_type)``, in the order of the model."""
        found = [item for key in dict.fromkeys(keys) for item in self._by_key.get(key, ())]
        found.sort(key=lambda item: item[0])
        return [node for _, node in found]

    def _add(self, graph: ir.Graph, opset: int) -> None:
        self.opsets[graph] = opset
        for node in graph:
            key = node.domain, node.op_type
            self._by_key.setdefault(key, []).append((self.count, node))
            self.count += 1
