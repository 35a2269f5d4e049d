"""The ONNX function for an extension operator in a model: its body, with formal inputs.

A body depends on its operator, attributes, element types and ranks, and the opset, and is slow to
build. So the last bodies are cached, and copied for the next model that is written.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.cloning import clone_function
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.invented_dims import without_invented
from smelt.operators.declare import Definition

MARK = "smelt.operator"
"""Key in the metadata of a function: the extension operator that it implements."""

IN_PLACE_OF = "smelt.in_place_of"
"""Key in the metadata of a function: the ONNX operator that it replaces."""

KEPT = 64
"""Number of cached bodies."""

Instance: TypeAlias = tuple[object, ...]

_cache: OrderedDict[tuple[object, ...], ir.Function] = OrderedDict()
_lock = threading.Lock()


def built_function(
    model: ir.Model, operator: Definition, node: ir.Node, instance: Instance
) -> ir.Function | None:
    """Return the body as a function of inputs with the dtypes and ranks of ``node``, sizes unknown.

    ``instance`` is the result of ``instance_of``. None if ONNX cannot express the body, or if too
    little is known about the inputs. ``model`` gets the imports that the body needs.
    """
    _check_inputs(operator, node)
    if not _is_typed(operator, node):
        return None
    # The operator itself, since another may have its name.
    key = (operator, tuple(sorted(model.opset_imports.items())), *instance)
    if _is_large(node) or not _has_hash(key):
        return _build_function(model, operator, node)
    with _lock:
        cached = _cache.get(key)
        if cached is not None:
            _cache.move_to_end(key)
    if cached is None:
        function = _build_function(model, operator, node)
        if function is not None:
            with _lock:
                _cache[key] = clone_function(function)
                while len(_cache) > KEPT:
                    _cache.popitem(last=False)
        return function
    for domain, version in cached.opset_imports.items():
        model.opset_imports.setdefault(domain, version)
    return clone_function(cached)


def _is_large(node: ir.Node) -> bool:
    """True if an attribute is a tensor or a graph, which a cache must not keep alive."""
    kinds = (ir.AttributeType.TENSOR, ir.AttributeType.GRAPH)
    return any(attribute.type in kinds for attribute in node.attributes.values())


def _has_hash(key: tuple[object, ...]) -> bool:
    """True if ``key`` is hashable; a default that is a list is not."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def instance_of(operator: Definition, node: ir.Node) -> Instance:
    """Return everything on which the body for ``node`` depends, besides its operator.

    This is: attributes (also as text, because 0.0 equals -0.0), element types and ranks of inputs,
    and the number of results.
    """
    attributes = tuple((*pair, repr(pair[1])) for pair in operator.attributes_of(node).items())
    types = tuple(
        None if v is None else (v.dtype, None if v.shape is None else len(v.shape))
        for v in node.inputs
    )
    return node.domain, operator.key, attributes, types, len(node.outputs)


def _build_function(model: ir.Model, operator: Definition, node: ir.Node) -> ir.Function | None:
    """Return the body of ``node`` as a function, uncached."""
    values = operator.attributes_of(node)
    # Absent inputs have a parameter, too, because operands are matched by position.
    parameters = [_formal(operator, i, value) for i, value in enumerate(node.inputs)]
    inputs = [f if v is not None else None for f, v in zip(parameters, node.inputs, strict=True)]
    graph = ir.Graph(parameters, [], nodes=[], opset_imports={"": model.opset_imports.get("", 1)})
    builder = Builder(model, graph, ShapeInference(model), in_function=True)
    results = operator.build_body(builder, inputs, values)
    if results is None:
        return None
    for result in results:
        # A body may return an input, or a value twice; a function needs distinct inner results.
        needs_identity = result in graph.outputs or result.producer() is None
        graph.outputs.append(builder.op("Identity", result) if needs_identity else result)
    _name_values(graph)
    _forget_invented(graph)
    for used in (node.domain for inner in scope.graphs_below(graph) for node in inner):
        if used:
            graph.opset_imports[used] = model.opset_imports[used]
    # The values of this instance are the defaults, so a node need not set them.
    attributes = [
        ir.Attr(attribute.name, attribute.type, values[attribute.name])
        for attribute in operator.attributes
        if values[attribute.name] is not None
    ]
    function = ir.Function(operator.domain, operator.name, graph=graph, attributes=attributes)
    function.metadata_props[MARK if node.domain else IN_PLACE_OF] = operator.name
    return function


def _check_inputs(operator: Definition, node: ir.Node) -> None:
    """Raise InvalidModel E330 if a required input is missing."""
    inputs = [*node.inputs, *[None] * len(operator.inputs)]
    for name, value in zip(operator.inputs, inputs, strict=False):
        if value is None and not name.endswith("?"):
            at = f"node {node.name!r} ({operator.domain}.{operator.name})"
            raise InvalidModel(
                "E330",
                f"input {name!r} is missing",
                at=at,
                why="the operator cannot do without this input",
                fix=f"give the node a value for {name!r}",
            )


def _is_typed(operator: Definition, node: ir.Node) -> bool:
    """True if the dtypes and, if needed, the ranks of all inputs are known."""
    inputs = [value for value in node.inputs if value is not None]
    ranked = operator.any_rank or all(value.shape is not None for value in inputs)
    return ranked and all(value.dtype is not None for value in inputs)


def _formal(operator: Definition, index: int, value: ir.Value | None) -> ir.Value:
    """Return the function's parameter for input ``index``, of the dtype and rank of ``value``, with
    unknown sizes."""
    names = operator.inputs
    name = names[index].rstrip("?") if index < len(names) else f"{names[-1]}{index}"
    if value is None:
        return ir.Value(name=name)
    shape = None if value.shape is None else ir.Shape([None] * len(value.shape))
    dtype = value.dtype
    return ir.Value(name=name, type=None if dtype is None else ir.TensorType(dtype), shape=shape)


def _forget_invented(graph: ir.Graph) -> None:
    """Remove invented names of sizes, which mean nothing in another model."""
    for inner in scope.graphs_below(graph):
        for value in (*inner.inputs, *(result for node in inner for result in node.outputs)):
            if value.shape is not None:
                value.shape = without_invented(value.shape, frozenset())


def _name_values(graph: ir.Graph) -> None:
    """Give nodes and results short names by position: ``n0``, ``t0_0``."""
    for i, node in enumerate(graph):
        node.name = f"n{i}"
        for j, value in enumerate(node.outputs):
            value.name = f"t{i}_{j}"
