"""Check names, order, cycles and nesting of graphs, before any pass relies on them."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import scope
from smelt.ir.tensors.missing_weights import is_missing_weight

MAX_DEPTH = 64
"""How deep graphs may nest; protobuf itself stops at about 50."""


def check_depth(model: ir.Model) -> None:
    """Raise InvalidModel E312 for graphs nested deeper than ``MAX_DEPTH``: walks are recursive."""
    pending = [(model.graph, 1)]
    pending += [(function.graph, 1) for function in model.functions.values()]
    while pending:
        graph, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise InvalidModel(
                "E312",
                f"graphs are nested more than {MAX_DEPTH} deep",
                why="deeper nesting would exceed the stack of Python",
                fix="export the model again without nested control flow",
            )
        pending += [(inner, depth + 1) for node in graph for inner in scope.subgraphs(node)]


def check_structure(model: ir.Model) -> None:
    """Sort misordered nodes; raise InvalidModel if no order works.

    E303: a cycle. E305: a value that nothing writes. E306: a domain that is not imported.
    """
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    for root, imports in roots:
        if not _is_ordered(root, set()):
            _sort(root)
        _check_values(root, imports)


def _is_ordered(graph: ir.Graph, written: set[ir.Value]) -> bool:
    """True if every node, subgraphs included, reads only values written before it.

    ``written`` are the values written so far; those of ``graph`` are added.
    """
    own_values = [*graph.inputs, *graph.initializers.values()]
    written.update(own_values)
    for node in graph:
        for value in node.inputs:
            if value is not None and value not in written and value.producer() is not None:
                return False
        for inner in scope.subgraphs(node):
            if not _is_ordered(inner, written):
                return False
        written.update(node.outputs)
    return True


def _sort(graph: ir.Graph) -> None:
    """Sort the nodes; raises InvalidModel E303 for a cycle."""
    try:
        graph.sort()
    except ValueError as error:
        stuck = ", ".join(repr(node.name or node.op_type) for node in _nodes_in_cycles(graph))
        raise InvalidModel(
            "E303",
            "the graph has a cycle",
            at=f"among the nodes {stuck}" if stuck else f"within a subgraph of {graph.name!r}",
            why="a value would be needed to compute itself",
            fix="export the model again, or correct the node",
        ) from error


def _nodes_in_cycles(graph: ir.Graph) -> list[ir.Node]:
    """Return up to four nodes that a topological sort cannot place, for an error message.

    They belong to a cycle, or depend on one. ``waiting`` counts the inputs of each node that no
    placed node has computed.
    """
    waiting = {node: _waits_for(node, graph) for node in graph}
    ready = [node for node, count in waiting.items() if count == 0]
    placed = set(ready)
    while ready:
        for value in ready.pop().outputs:
            for reader in scope.consumers(value):
                if reader in waiting and reader not in placed:
                    waiting[reader] = sum(
                        v is not None and v.producer() in waiting and v.producer() not in placed
                        for v in reader.inputs
                    )
                    if waiting[reader] == 0:
                        placed.add(reader)
                        ready.append(reader)
    return [node for node in graph if node not in placed][:4]


def _waits_for(node: ir.Node, graph: ir.Graph) -> int:
    """Return how many inputs of ``node`` are results of nodes of ``graph``."""
    producers = (value.producer() for value in node.inputs if value is not None)
    return sum(producer is not None and producer.graph is graph for producer in producers)


def _check_values(root: ir.Graph, imports: dict[str, int]) -> None:
    """Raise InvalidModel E305 or E306 for values without a writer and domains without an import."""
    graphs = [root]
    for node in scope.nodes_below(root):
        if node.domain not in imports:
            raise _not_imported(node)
        for value in node.inputs:
            if value is not None and not _is_defined(value):
                raise _undefined(value, f"node {node.name!r} ({node.op_type}) reads it")
        graphs += scope.subgraphs(node)
    for graph in graphs:
        for value in graph.outputs:
            if not _is_defined(value):
                raise _undefined(value, f"graph {graph.name!r} returns it")


def _is_defined(value: ir.Value) -> bool:
    """True if the value is a result, an input, or an initializer (also one without numbers yet)."""
    if value.producer() is not None or value.is_graph_input():
        return True
    return value.is_initializer() and (value.const_value is not None or is_missing_weight(value))


def _undefined(value: ir.Value, at: str) -> InvalidModel:
    """Return E305 for ``value``."""
    return InvalidModel(
        "E305",
        f"value {value.name!r} is never written",
        at=at,
        why="no node, input or initializer of a graph in scope has that name",
        fix="an initializer may be missing: export the model again with its weights",
    )


def _not_imported(node: ir.Node) -> InvalidModel:
    """Return the error for a node whose domain the model does not import."""
    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return InvalidModel(
        "E306",
        f"the domain of operator {name} is not imported",
        at=f"node {node.name!r}",
        why="the imported version defines what the operator computes",
        fix="add the domain to opset_import",
    )
