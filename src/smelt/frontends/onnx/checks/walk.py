"""Every list of nodes in a protobuf: of the graph, of functions, and of the graphs in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from smelt.errors import InvalidModel
from smelt.frontends.onnx.structure import MAX_DEPTH


@dataclass(frozen=True, eq=False)
class Scope:
    """Nodes and where they stand: in ``graph``, or else in the body of ``function``.

    ``function`` is that around the graph, too; ``depth`` counts the graphs around it. ``outer`` is
    the scope around, None for the main graph and for functions, whose node number ``position``
    carries this graph.
    """

    nodes: Sequence[onnx.NodeProto]
    graph: onnx.GraphProto | None
    function: onnx.FunctionProto | None
    depth: int = 1
    outer: Scope | None = None
    position: int = 0

    def __str__(self) -> str:
        if self.graph is not None:
            return f"graph {self.graph.name!r}"
        return f"function {self.function.name!r}" if self.function is not None else "the model"


def scopes(proto: onnx.ModelProto) -> Iterator[Scope]:
    """Each scope, outer first. Raises InvalidModel E312 beyond ``MAX_DEPTH``."""
    pending = [Scope(proto.graph.node, proto.graph, None)]
    pending += [Scope(function.node, None, function) for function in proto.functions]
    while pending:
        scope = pending.pop()
        if scope.depth > MAX_DEPTH:
            raise InvalidModel("E312", f"graphs are nested more than {MAX_DEPTH} deep")
        yield scope
        for position, node in enumerate(scope.nodes):
            pending += [
                Scope(graph.node, graph, scope.function, scope.depth + 1, scope, position)
                for graph in _subgraphs(node)
            ]


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def place(node: onnx.NodeProto) -> str:
    """How messages point at a node."""
    return f"node {node.name!r} ({node.op_type})"
