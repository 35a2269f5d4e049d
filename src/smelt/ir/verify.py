"""Checks the invariants that every pass must keep, in one linear walk.

A broken invariant is a bug of smelt, never of the model: the frontends refuse bad models.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from smelt.errors import InternalError
from smelt.ir import scope
from smelt.ir.onnx_ir_private import uses_of
from smelt.ir.signature import DOMAINS, misfits, signature_of
from smelt.ir.tensors.missing_weights import is_missing_weight


def verify(model: ir.Model) -> None:
    """Raise InternalError E905 with all broken invariants of ``model``, if there are any."""
    problems = list(problems_of(model))
    if problems:
        raise InternalError(
            "E905",
            f"the model is broken after a pass: {problems[0]}",
            at=problems[1:8],
            fix="report it with the model and the pipeline",
        )


def problems_of(model: ir.Model) -> Iterator[str]:
    """Yield each broken invariant as a sentence.

    Checks order, names, ownership, uses, imports, and signatures of nodes at the imported opset.
    """
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    declared = {(key[0], key[1]) for key in model.functions}
    for root, imports in roots:
        yield from _Walk(imports, declared).graph(root)


class _Walk:
    """Checks a graph and all subgraphs; ``declared`` are the operators that are functions of the
    model."""

    def __init__(self, imports: dict[str, int], declared: set[tuple[str, str]]) -> None:
        """Begin a walk; ``known`` are the values in scope, ``names`` their names."""
        self.imports = imports
        self.declared = declared
        self.known: set[ir.Value] = set()
        self.names: set[str] = set()

    def graph(self, graph: ir.Graph) -> Iterator[str]:
        """Yield the problems of ``graph``; its values leave the scope afterwards."""
        defined: list[ir.Value] = []
        yield from self.graph_in_scope(graph, defined)
        self.known.difference_update(defined)
        self.names.difference_update(value.name for value in defined if value.name)

    def graph_in_scope(self, graph: ir.Graph, defined: list[ir.Value]) -> Iterator[str]:
        """Yield the problems of ``graph`` and add its values to ``defined``."""
        for value in graph.inputs:
            yield from self.define(value, defined)
        for value in graph.initializers.values():
            if not value.is_graph_input():
                yield from self.define(value, defined)
        for name, value in graph.initializers.items():
            if value.name != name:
                yield f"initializer {name!r} is called {value.name!r}"
            if value.const_value is None and not is_missing_weight(value):
                yield f"initializer {name!r} has no tensor"
        for node in graph:
            yield from self.node(node, graph, defined)
        for value in graph.outputs:
            if value not in self.known:
                yield f"graph {graph.name!r} returns {value.name!r}, which nothing there writes"

    def node(self, node: ir.Node, graph: ir.Graph, defined: list[ir.Value]) -> Iterator[str]:
        """Yield the problems of ``node``, which stands in ``graph``."""
        place = f"node {node.name!r} ({node.op_type})"
        if node.graph is not graph:
            yield f"{place} stands in a graph that does not own it"
        if node.domain not in self.imports:
            yield f"{place} is of the domain {node.domain!r}, which is not imported"
        yield from (f"{place}: {why}" for why in self.signature_deviations(node))
        for index, value in enumerate(node.inputs):
            if value is None:
                continue
            if value not in self.known:
                yield f"{place} reads {value.name!r} before it is written"
            if (node, index) not in uses_of(value):
                yield f"{place} reads {value.name!r}, and is not among the uses of that value"
        for inner in scope.subgraphs(node):
            yield from self.graph(inner)
        for value in node.outputs:
            if value.producer() is not node:
                yield f"{place} has the output {value.name!r} of another node"
            yield from self.define(value, defined)

    def signature_deviations(self, node: ir.Node) -> Iterator[str]:
        """Yield how ``node`` deviates from the signature of its operator at this opset."""
        if node.domain not in DOMAINS or (node.domain, node.op_type) in self.declared:
            return
        version = self.imports.get(node.domain)
        if version is None:
            return
        signature = signature_of(node.op_type, version, node.domain)
        if signature is None:
            yield f"opset {version} has no operator {node.op_type}"
        else:
            yield from misfits(node, signature)

    def define(self, value: ir.Value, defined: list[ir.Value]) -> Iterator[str]:
        """Bring ``value`` into scope; yield a problem if its name is taken."""
        if value.name and value.name in self.names:
            yield f"two values are called {value.name!r}"
        defined.append(value)
        self.known.add(value)
        if value.name:
            self.names.add(value.name)
