"""Describe a model as data for the page: nodes, values, weights, and the tree of modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.check.report.folding import constant_nodes
from smelt.check.report.kinds import kind_of, summary_of
from smelt.check.report.labels import lines_of
from smelt.check.report.modules import DEPTH, Path, Tree, path_of, tree_of
from smelt.check.report.shown import shown
from smelt.check.report.weights import TIMES, WeightFacts, label_of
from smelt.ir import constants, opset, scope, text
from smelt.ir.listing import dim_text

Facts: TypeAlias = Callable[[ir.Node, int], dict[str, Any]]
"""Returns entries to add to the data of a node, given the node and its number."""


def graph_of(
    model: ir.Model,
    facts: Facts = lambda node, index: {},
    place: Callable[[ir.Node], Path] | None = None,
) -> dict[str, Any]:
    """Return ``model`` as plain data; nodes are numbered in the order of ``scope.nodes``.

    ``facts`` adds entries to each node. ``place`` returns the path of the groups around a node;
    without it, groups follow the modules in the names of nodes. ``places.Places`` provides a
    ``place`` that uses the groups of another model.
    """
    return _Writer(model, facts, place).document()


class _Writer:
    """Converts one model to plain data; each value is recorded when it is first met."""

    def __init__(
        self, model: ir.Model, facts: Facts, place: Callable[[ir.Node], Path] | None
    ) -> None:
        """Number the nodes of ``model``; its values are numbered when they are first met."""
        self.model, self.facts = model, facts
        self.path, self.is_placed = place or path_of, place is not None
        self.folded = constant_nodes(model)
        self.values: list[list[str]] = []
        self.weights: dict[int, dict[str, Any]] = {}
        self._weight_facts = WeightFacts()
        self._number_of: dict[ir.Value, int] = {}
        self._node_number = {node: index for index, node in enumerate(scope.nodes(model))}

    def document(self) -> dict[str, Any]:
        """Return the data of the model: name, opsets, ports, nodes, values, weights, tree."""
        model = self.model
        inputs = [self._value(value) for value in model.graph.inputs]
        nodes = [self._node(node, index) for node, index in self._node_number.items()]
        tree = tree_of(self._items(model.graph), self.is_placed)
        for function in model.functions.values():
            kids = tree_of(self._items(function.graph), self.is_placed)
            name = shown(f"function {function.domain}.{function.name}", 80)
            tree.append({"name": name, "kids": kids, "body": True})
        _summarize(tree, [node["op"] for node in nodes])
        return {
            "name": shown(model.graph.name or "", 80),
            "opsets": {shown(d or "ai.onnx", 80): v for d, v in model.opset_imports.items()},
            "inputs": inputs,
            "outputs": [self._value(value) for value in model.graph.outputs],
            "nodes": nodes,
            "values": self.values,
            "weights": self.weights,
            "tree": tree,
        }

    def _node(self, node: ir.Node, index: int) -> dict[str, Any]:
        """Return the data of one node: operator, name, numbers of its values, attributes."""
        written: dict[str, Any] = {
            "op": shown(f"{node.domain}.{node.op_type}" if node.domain else node.op_type, 80),
            "name": shown(node.name or "(no name)"),
            "in": [-1 if value is None else self._value(value) for value in node.inputs],
            "out": [self._value(value) for value in node.outputs],
        }
        written["kind"] = kind_of(node.op_type)
        version = opset.opset_of(self.model, node.domain)
        written["lines"] = lines_of(node, version, self._constant_text)
        if node in self.folded:
            written["constant"] = True
        texts = {name: text.attribute(attr) for name, attr in node.attributes.items()}
        attributes = [[shown(name, 80), shown(t)] for name, t in texts.items() if t is not None]
        if attributes:
            written["attributes"] = attributes
        return written | self.facts(node, index)

    def _value(self, value: ir.Value) -> int:
        """Return the number of ``value``; the first call records its name, type and weight."""
        number = self._number_of.get(value)
        if number is None:
            number = self._number_of[value] = len(self.values)
            self.values.append([shown(value.name), shown(text.type_of(value, dim_text), 120)])
            tensor = constants.tensor_of(value)
            if tensor is not None:
                self.weights[number] = self._weight_facts.of(value, tensor)
        return number

    def _constant_text(self, value: ir.Value) -> str | None:
        """Return the elements or the shape of a constant or a folded result as text, None for other
        values.
        """
        facts = self.weights.get(self._value(value))
        if facts is not None:
            return label_of(facts)
        if value.producer() not in self.folded:
            return None
        dims = [dim_text(dim) for dim in value.shape] if value.shape is not None else ["constant"]
        return TIMES.join(dims) or "scalar"

    def _items(self, graph: ir.Graph, depth: int = 0) -> list[tuple[Path, Tree, str]]:
        """Return path, tree and operator of each node of ``graph``; constant nodes are left out.

        The tree of a node with inner graphs is a group of their nodes, down to ``DEPTH`` levels.
        """
        items: list[tuple[Path, Tree, str]] = []
        for node in graph:
            if node in self.folded:
                continue
            tree: Tree = self._node_number[node]
            if depth < DEPTH and scope.carries_graphs(node):
                tree = self._group_of_inner_graphs(node, depth + 1)
            items.append((self.path(node), tree, node.op_type))
        return items

    def _group_of_inner_graphs(self, node: ir.Node, depth: int) -> Tree:
        """Return a node with inner graphs as a group that holds the trees of these graphs."""
        inner_graphs = list(scope.subgraphs(node))
        trees = [
            tree_of(self._items(inner_graph, depth), self.is_placed) for inner_graph in inner_graphs
        ]
        kids = trees[0]
        if len(inner_graphs) > 1:
            pairs = zip(inner_graphs, trees, strict=True)
            kids = [
                {"name": shown(inner_graph.name, 60), "kids": tree, "body": True}
                for inner_graph, tree in pairs
                if tree
            ]
        number = self._node_number[node]
        return {"name": shown(node.op_type, 60), "node": number, "kids": kids} if kids else number


def _summarize(trees: list[Tree], ops: list[str]) -> Counter[str]:
    """Set ``what`` of each group to a summary of its operators; return the operators below
    ``trees``.
    """
    operators: Counter[str] = Counter()
    for tree in trees:
        if isinstance(tree, int):
            operators[ops[tree]] += 1
            continue
        below = _summarize(tree["kids"], ops)
        tree["what"] = summary_of(below)
        operators += below
    return operators
