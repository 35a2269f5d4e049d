"""Check names of values: UTF-8 text, not empty, and written once in their scope."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.walk import Scope, Scopes, place_of_node


def check_names(scopes: Scopes) -> None:
    """Raise InvalidModel for the first invalid name.

    E304: a value written twice. E312: graphs nested too deep. E315: not text. E325: no name.
    """
    positions: dict[Scope, dict[str, int]] = {}
    for scope in scopes:
        for node in scope.nodes:
            _check_node(node)
        if scope.graph is not None:
            _check_have_names(scope.graph, str(scope))
        _check_unique(scope)
        if scope.outer is not None:
            _check_not_hidden(scope, positions)


def _check_node(node: onnx.NodeProto) -> None:
    """Raise InvalidModel for a name that is not UTF-8 (E315) or a missing operator (E325)."""
    # Protobuf returns text that is not UTF-8 as bytes.
    for name in (*node.input, *node.output, node.name, node.op_type, node.domain):
        if isinstance(name, bytes):
            raise InvalidModel(
                "E315",
                f"the name {name[:40]!r} is not UTF-8 text",
                why="ONNX demands names in UTF-8",
                fix="export the model again with other names",
            )
    if not node.op_type:
        raise InvalidModel(
            "E325",
            "a node has no operator name",
            at=place_of_node(node),
            why="its op_type is empty",
            fix="export the model again, or correct the node",
        )


def _check_have_names(graph: onnx.GraphProto, at: str) -> None:
    """Raise InvalidModel E325 for an input, output or weight without a name."""
    kinds = (
        ("an input", (info.name for info in graph.input)),
        ("an output", (info.name for info in graph.output)),
        ("a weight", (tensor.name for tensor in graph.initializer)),
        ("a sparse weight", (tensor.values.name for tensor in graph.sparse_initializer)),
    )
    for kind, names in kinds:
        for index, name in enumerate(names):
            if not name:
                raise InvalidModel(
                    "E325",
                    f"{kind} has no name",
                    at=f"{at}: number {index}",
                    why="nodes refer to values by name",
                    fix="export the model again, or correct the node",
                )


def _definitions(scope: Scope) -> Iterator[tuple[str, str | onnx.NodeProto]]:
    """Yield every name that the scope defines, and its writer.

    An input with a default is also an initializer; its name is yielded once.
    """
    yield from _initial_names(scope)
    for node in scope.nodes:
        for name in node.output:
            if name:
                yield name, node


def _initial_names(scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield the names defined before any node runs: inputs, and weights that are not defaults."""
    graph = scope.graph
    if graph is not None:
        inputs = {info.name for info in graph.input}
        yield from ((info.name, "an input") for info in graph.input)
        weights = [tensor.name for tensor in graph.initializer]
        weights += [tensor.values.name for tensor in graph.sparse_initializer]
        yield from ((name, "a weight") for name in weights if name not in inputs)
    elif scope.function is not None:
        yield from ((name, "an input") for name in scope.function.input)


def _check_unique(scope: Scope) -> None:
    """Raise InvalidModel E304 for a value written twice."""
    writers: dict[str, str | onnx.NodeProto] = {}
    for name, writer in _definitions(scope):
        if name in writers:
            raise InvalidModel(
                "E304",
                f"two nodes or inputs define the value {name!r}",
                at=f"{scope}: {_described(writers[name])}, then {_described(writer)}",
                why="each value of a graph has one writer",
                fix="rename one of the two results",
            )
        writers[name] = writer


def _described(writer: str | onnx.NodeProto) -> str:
    """Return the writer of a value as text for an error: "an input", "a weight" or a node."""
    return writer if isinstance(writer, str) else place_of_node(writer)


def _positions(scope: Scope) -> dict[str, int]:
    """Return the number of the node that writes each name; -1 for inputs and weights."""
    positions = {name: -1 for name, _ in _initial_names(scope)}
    for position, node in enumerate(scope.nodes):
        positions.update(dict.fromkeys(node.output, position))
    return positions


def _check_not_hidden(scope: Scope, positions: dict[Scope, dict[str, int]]) -> None:
    """Raise InvalidModel E304 if a node writes a name that its graph can read from outside."""
    inner, outer = scope, scope.outer
    while outer is not None:
        if outer not in positions:
            positions[outer] = _positions(outer)
        visible = positions[outer]
        for node in scope.nodes:
            for name in node.output:
                # The graph reads values that nodes before the one around it write.
                if name and visible.get(name, inner.position) < inner.position:
                    raise InvalidModel(
                        "E304",
                        f"the value {name!r} is defined in a graph and in one around it",
                        at=f"{scope}: {place_of_node(node)}; and in {outer} around it",
                        why="an inner graph reads values of the outer graph by name",
                        fix="rename the value in the inner graph",
                    )
        inner, outer = outer, outer.outer
