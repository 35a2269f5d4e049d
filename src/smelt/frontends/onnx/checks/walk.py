"""Walk every list of nodes in a protobuf: of graphs, of functions, and of their subgraphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.structure import MAX_DEPTH


@dataclass(frozen=True, eq=False)
class Scope:
    """A list of nodes: of ``graph``, or of the body of ``function``.

    ``function`` is also set for graphs inside of a function. ``depth`` counts the enclosing graphs.
    ``outer`` is the enclosing scope, None for the main graph and for functions; its node number
    ``position`` holds this graph.
    """

    nodes: tuple[onnx.NodeProto, ...]
    graph: onnx.GraphProto | None
    function: onnx.FunctionProto | None
    depth: int = 1
    outer: Scope | None = None
    position: int = 0

    @cached_property
    def attributes(self) -> tuple[onnx.AttributeProto, ...]:
        """The attributes of all nodes."""
        return tuple(attribute for node in self.nodes for attribute in node.attribute)

    def __str__(self) -> str:
        """Return where the scope is, for the message of an error."""
        if self.graph is not None:
            return f"graph {self.graph.name!r}"
        return f"function {self.function.name!r}" if self.function is not None else "the model"


Scopes: TypeAlias = tuple[Scope, ...]
"""All scopes of a protobuf, outer ones first."""


def scopes(proto: onnx.ModelProto) -> Scopes:
    """Return all scopes, outer first; raises InvalidModel E312 beyond ``MAX_DEPTH``.

    Compute them once for all checks: protobuf creates an object for each node that it returns,
    which costs more than most checks.
    """
    return tuple(_walk(proto))


def _walk(proto: onnx.ModelProto) -> Iterator[Scope]:
    """Yield all scopes, outer first."""
    pending = [Scope(tuple(proto.graph.node), proto.graph, function=None)]
    pending += [
        Scope(tuple(function.node), graph=None, function=function) for function in proto.functions
    ]
    while pending:
        scope = pending.pop()
        if scope.depth > MAX_DEPTH:
            raise InvalidModel(
                "E312",
                f"graphs are nested more than {MAX_DEPTH} deep",
                why="deeper nesting would exceed the stack of Python",
                fix="export the model again without nested control flow",
            )
        yield scope
        for position, node in enumerate(scope.nodes):
            for attribute in node.attribute:
                pending += [
                    Scope(
                        tuple(graph.node), graph, scope.function, scope.depth + 1, scope, position
                    )
                    for graph in _subgraphs(attribute)
                ]


def _subgraphs(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs in ``attribute``."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def place_of_node(node: onnx.NodeProto | ir.Node) -> str:
    """Return a node's name and operator for messages."""
    return f"node {node.name!r} ({node.op_type})"
