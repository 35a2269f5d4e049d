"""Walks over the nested graphs of a model, and queries for consumers of a value.

ONNX graphs nest: ``If``, ``Loop`` and ``Scan`` have subgraphs, and those read values of enclosing
graphs (captures). onnx_ir keeps captured reads in the same use lists as direct ones, so the queries
here see both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir.onnx_ir_private import uses_of

GRAPH_CARRIERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""ONNX operators with subgraphs; this test is ten times as fast as a look at the attributes."""


def is_flat(node: ir.Node) -> bool:
    """True if ``node`` surely has no subgraph; a fast test."""
    return node.op_type not in GRAPH_CARRIERS and not node.domain


def carries_graphs(node: ir.Node) -> bool:
    """True if ``node`` has a subgraph."""
    return bool(subgraphs(node))


def subgraphs(node: ir.Node) -> Sequence[ir.Graph]:
    """Return the subgraphs of ``node``, in attribute order.

    Called for every node in each walk, so it returns early for nodes that have none.
    """
    if node.op_type not in GRAPH_CARRIERS and not node.domain:
        return ()
    graphs_of_node: list[ir.Graph] = []
    for attr in node.attributes.values():
        if attr.type == ir.AttributeType.GRAPH and not attr.is_ref():
            graphs_of_node.append(attr.as_graph())
        elif attr.type == ir.AttributeType.GRAPHS and not attr.is_ref():
            graphs_of_node += attr.as_graphs()
    return graphs_of_node


def graphs_below(graph: ir.Graph) -> Iterator[ir.Graph]:
    """Yield ``graph`` and every subgraph below it, outer first."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield current
        inner = [
            sub
            for node in current
            if node.op_type in GRAPH_CARRIERS or node.domain  # twice as fast as a call of each
            for sub in subgraphs(node)
        ]
        pending.extend(reversed(inner))


def graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """Yield the main graph, every subgraph below it, then those of every function, outer first."""
    for root in (model.graph, *(function.graph for function in model.functions.values())):
        yield from graphs_below(root)


def nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Yield every node of every graph of ``model``; the graphs must not be edited meanwhile."""
    for root in (model.graph, *(function.graph for function in model.functions.values())):
        yield from nodes_below(root)


def nodes_below(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield every node of ``graph`` and of all subgraphs, outer graphs first."""
    pending = [graph]
    while pending:
        inner: list[ir.Graph] = []
        for node in pending.pop():
            if node.op_type in GRAPH_CARRIERS or node.domain:
                inner += subgraphs(node)
            yield node
        pending.extend(reversed(inner))


def values(model: ir.Model) -> Iterator[ir.Value]:
    """Yield every graph input and node output of ``model``, graph by graph."""
    for graph in graphs(model):
        yield from graph.inputs
        for node in graph:
            yield from node.outputs


def nested_nodes(node: ir.Node) -> Iterator[ir.Node]:
    """Yield every node inside the subgraphs of ``node``, at any depth."""
    pending = [] if is_flat(node) else list(subgraphs(node))
    while pending:
        for inner in pending.pop():
            yield inner
            pending.extend(subgraphs(inner))


def captures(node: ir.Node) -> tuple[ir.Value, ...]:
    """Return the values of enclosing graphs that subgraphs of ``node`` read, each once, in
    order."""
    inner_graphs = set(subgraphs(node))
    read: dict[ir.Value, None] = {}
    for inner in nested_nodes(node):
        inner_graphs.update(subgraphs(inner))
        for value in inner.inputs:
            if value is not None:
                read.setdefault(value)
    for graph in inner_graphs:
        for value in graph.outputs:
            read.setdefault(value)
    return tuple(value for value in read if defining_graph(value) not in inner_graphs)


def defining_graph(value: ir.Value) -> ir.Graph | None:
    """Return the graph that defines ``value``, None if there is none.

    A branch may return a value of an outer graph: the graph of the producer defines the value then.
    """
    producer = value.producer()
    return producer.graph if producer is not None else value.graph


def num_uses(value: ir.Value) -> int:
    """Return the number of node inputs that read ``value``, without the copy of
    ``Value.uses()``."""
    return len(uses_of(value))


def has_one_use(value: ir.Value) -> bool:
    """True if exactly one node input reads ``value`` and no graph returns it."""
    return num_uses(value) == 1 and not value.is_graph_output()


def is_dead(value: ir.Value) -> bool:
    """True if no node reads ``value`` and no graph returns it."""
    return num_uses(value) == 0 and not value.is_graph_output()


CHECKS = frozenset({("smelt", "ValidateNonsingular")})
"""Operators that abort a run for some inputs: they stay even if nobody reads their results."""


def is_unread(node: ir.Node) -> bool:
    """True if ``node`` can be removed: every output is dead and the node checks nothing.

    Called for every node in each round.
    """
    for value in node.outputs:  # all() over a generator takes three times as long
        if uses_of(value) or value.is_graph_output():
            return False
    return (node.domain, node.op_type) not in CHECKS


def consumers(value: ir.Value) -> tuple[ir.Node, ...]:
    """Return the nodes that read ``value``, each once, in the order of their first use."""
    uses = uses_of(value)
    if len(uses) == 1:
        return tuple(usage.node for usage in uses)
    return tuple(dict.fromkeys(usage.node for usage in uses))


def weight_bytes(model: ir.Model) -> int:
    """Return the total bytes of all initializers of ``model``, read or not."""
    return sum(
        value.const_value.nbytes
        for graph in graphs(model)
        for value in graph.initializers.values()
        if value.const_value is not None
    )
