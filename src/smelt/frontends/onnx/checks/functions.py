"""Check functions of a model: names, parameters, calls and opsets."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import scope
from smelt.ir.opsets.raise_opset import has_other_meaning

MAX_CALLS = 100
"""How deep calls may nest; the checker of ``onnx`` has the same limit."""


def check_functions(proto: onnx.ModelProto) -> None:
    """Raise InvalidModel for the first malformed function.

    E323: two functions or parameters with the same name. E305: an output that nothing writes. E325:
    a missing name.
    """
    seen: set[tuple[str, str, str]] = set()
    for function in proto.functions:
        key = (function.domain, function.name, function.overload)
        at = f"function {function.name!r}"
        if not function.name or not function.domain:
            missing = "domain" if function.name else "name"
            raise InvalidModel(
                "E325",
                f"a function has no {missing}",
                at=at,
                why="nodes call a function by its domain and name",
                fix=f"give the function a {missing}",
            )
        if key in seen:
            why = f"an earlier function has the domain {function.domain!r} and this name, too"
            raise InvalidModel(
                "E323",
                "two functions have one name",
                at=at,
                why=why,
                fix="rename or remove one of them",
            )
        seen.add(key)
        defaults = [attribute.name for attribute in function.attribute_proto]
        _check_parameters("inputs", function.input, at)
        _check_parameters("outputs", function.output, at)
        _check_parameters("attributes", [*function.attribute, *defaults], at)
        _check_outputs(function, at)


def _check_outputs(function: onnx.FunctionProto, at: str) -> None:
    """Raise InvalidModel E305 for an output that is neither an input nor the result of a node."""
    written = {*function.input, *(name for node in function.node for name in node.output)}
    for name in function.output:
        if name not in written:
            raise InvalidModel(
                "E305",
                f"the output {name!r} of a function is not computed",
                at=at,
                why="an output of a function is the result of one of its nodes",
                fix="add the node that computes it, or remove the output",
            )


def _check_parameters(kind: str, names: Iterable[str], at: str) -> None:
    """Raise InvalidModel for a missing (E325) or repeated (E323) parameter name."""
    names = list(names)
    if not all(names):
        raise InvalidModel(
            "E325",
            f"one of the {kind} of a function has no name",
            at=at,
            why="nodes of the body refer to values by name",
            fix="export the model again, or correct the node",
        )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        what = f"a function has two {kind} of the same name"
        raise InvalidModel(
            "E323", what, at=at, why=f"both are called {repeated!r}", fix="rename one of them"
        )


def check_calls(model: ir.Model) -> None:
    """Raise InvalidModel for the first invalid call of a function.

    E308: a call has more operands or results than the function. E312: calls are nested too deep.
    E316: a function calls itself.
    """
    if not model.functions:
        return
    called: dict[ir.OperatorIdentifier, list[ir.OperatorIdentifier]] = {}
    for key, function in model.functions.items():
        called[key] = _calls_in(function.graph, model)
    _calls_in(model.graph, model)  # only to check the calls
    _check_nesting(called)


def check_opsets(model: ir.Model) -> None:
    """Raise InvalidModel E319 if a function's node has another meaning in the model's opset.

    ONNX requires operators to agree in both opsets. A runtime that inlines a function reads its
    nodes by the model's opset; a runtime that does not may read them by the function's opset.
    """
    opset = model.opset_imports.get("")
    for function in model.functions.values():
        version = function.opset_imports.get("", opset)
        if opset is None or version is None or version == opset:
            continue
        for graph in scope.graphs_below(function.graph):
            for node in graph:
                if has_other_meaning(node, version, opset):
                    raise InvalidModel(
                        "E319",
                        f"function {function.name!r} imports opset {version}, the model {opset}",
                        at=f"node {node.name!r} ({node.op_type})",
                        why=f"{node.op_type} is another operator in {opset}, and runtimes differ "
                        "in which of the two they follow",
                        fix=f"write the function for opset {opset}, or inline it before the export",
                    )


def _calls_in(root: ir.Graph, model: ir.Model) -> list[ir.OperatorIdentifier]:
    """Return the functions that the nodes below ``root`` call, and check each call."""
    called: dict[ir.OperatorIdentifier, None] = {}
    for graph in scope.graphs_below(root):
        for node in graph:
            key = node.op_identifier()
            function = model.functions.get(key)
            if function is not None:
                called[key] = None
                _check_call(node, function)
    return list(called)


def _check_call(node: ir.Node, function: ir.Function) -> None:
    """Raise InvalidModel E308 for a call with too many operands or results."""
    for kind, count, declared in (
        ("inputs", len(node.inputs), len(function.inputs)),
        ("outputs", len(node.outputs), len(function.outputs)),
    ):
        if count > declared:
            raise InvalidModel(
                "E308",
                "a node does not fit its function",
                at=f"node {node.name!r} ({node.op_type})",
                why=f"it has {count} {kind}, the function has {declared}",
                fix="give the node as many as the function declares",
            )


def _check_nesting(called: dict[ir.OperatorIdentifier, list[ir.OperatorIdentifier]]) -> None:
    """Raise InvalidModel E312 or E316 for deep or recursive calls.

    A depth-first search without recursion: ``path`` holds the functions being visited, from the
    root on. ``depth`` holds how deep the calls of each finished function nest.
    """
    depth: dict[ir.OperatorIdentifier, int] = {}
    for root in called:
        path: dict[ir.OperatorIdentifier, None] = {}
        pending = [root]
        while pending:
            key = pending[-1]
            if key in depth or key in path:
                pending.pop()
                if key not in depth:
                    path.pop(key)
                    depth[key] = 1 + max((depth[item] for item in called[key]), default=0)
                continue
            path[key] = None
            for item in called[key]:
                if item in path:
                    raise _circular(item, path)
            pending += [item for item in called[key] if item not in depth]
        if depth[root] > MAX_CALLS:
            what = f"functions call each other more than {MAX_CALLS} deep"
            raise InvalidModel(
                "E312",
                what,
                at=f"function {root[1]!r}",
                why="deeper calls would exceed the stack of Python",
                fix="inline the functions when you export the model",
            )


def _circular(key: ir.OperatorIdentifier, path: Iterable[ir.OperatorIdentifier]) -> InvalidModel:
    """Return the error for function ``key``, which the functions on ``path`` call in a circle."""
    circle = [name for _, name, _ in path]
    circle = circle[circle.index(key[1]) :]
    return InvalidModel(
        "E316",
        f"function {key[1]!r} calls itself",
        at=" -> ".join([*circle, key[1]]),
        why="ONNX allows no recursion in functions",
        fix="export the model again without the recursion",
    )
