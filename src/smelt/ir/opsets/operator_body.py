"""The function body that ONNX defines for an operator, as a graph for one node.

Some bodies are written for one opset, some are generated for a node and the types of its operands.
A body of an earlier opset than the model's is raised to the model's; if all bodies need a later
opset, that opset is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir import opset, scope
from smelt.ir.opsets.raise_opset import raise_opset

if TYPE_CHECKING:
    import onnx


@cache
def has_body(op_type: str, domain: str, version: int) -> bool:
    """True if ONNX defines the operator, at this version of its domain, by a function."""
    return bool(body_opsets(op_type, version, domain))


def body_opsets(op_type: str, version: int, domain: str = "") -> list[int]:
    """Return the ONNX opsets in whose operators ONNX has function bodies of ``op_type``.

    ``version`` is that of ``domain``, and selects the definition of the operator.
    """
    schema = opset.schema(op_type, version, domain)
    return [] if schema is None else _opsets(schema)


def body_of(node: ir.Node, version: int, imported: int) -> ir.Graph | int | None:
    """Return the body of ``node`` in operators of the ONNX opset ``imported``.

    ``version`` is that of the domain of ``node``. The inputs of the body are those of ``node``. An
    output that the body does not compute, and that nobody reads, is one more input. Outputs that
    the node lacks are dropped. Returns an opset instead if every body needs that later opset.
    Returns None if there is no body for these operands, or if none can be raised.
    """
    schema = opset.schema(node.op_type, version, node.domain)
    if schema is None or any(attr.is_ref() for attr in node.attributes.values()):
        return None
    versions = _opsets(schema)
    usable = [version_ for version_ in versions if node.domain or version_ <= imported]
    if not usable:
        return min(versions, default=None)
    proto = _proto(schema, max(usable), node)
    if proto is None:
        return None
    del proto.output[len(node.outputs) :]
    computed = {*proto.input, *(name for node_proto in proto.node for name in node_proto.output)}
    proto.input.extend(name for name in proto.output if name not in computed)
    function = ir.serde.deserialize_function(proto)
    # A body of another domain that names no opset is in the operators of the caller's.
    required_opset = function.opset_imports.setdefault("", imported if node.domain else max(usable))
    if required_opset > imported:
        return required_opset
    _fill_in(function.graph, _attributes(node, schema))
    return _raised_body(function.graph, node, imported)


def _raised_body(graph: ir.Graph, node: ir.Node, imported: int) -> ir.Graph | None:
    """Return ``graph``, typed by the operands of ``node``, in operators of opset ``imported``, or
    None."""
    for inner, operand in zip(graph.inputs, node.inputs, strict=False):
        if operand is not None:
            inner.type, inner.shape = operand.type, operand.shape
    try:
        raise_opset(ir.Model(graph, ir_version=10), imported)
    except (ErrorList, Unsupported):
        return None
    return graph


def _opsets(schema: Any) -> list[int]:
    """Return the opsets for which the schema, an ``onnx.defs.OpSchema``, has bodies."""
    opsets: list[int] = []
    if schema.has_context_dependent_function:
        opsets += schema.context_dependent_function_opset_versions
    elif schema.has_function:
        opsets += schema.function_opset_versions
    return opsets


def _proto(schema: Any, version: int, node: ir.Node) -> onnx.FunctionProto | None:
    """Return the function body of ``schema`` for ``node`` at opset ``version``, or None."""
    import onnx

    if not schema.has_context_dependent_function:
        text = schema.get_function_with_opset_version(version)
    else:
        operands = [_type(value).SerializeToString() for value in node.inputs]
        called = ir.serde.serialize_node(node).SerializeToString()
        text = schema.get_context_dependent_function_with_opset_version(version, called, operands)
    if not text:
        return None
    function: onnx.FunctionProto = onnx.FunctionProto.FromString(text)
    return function


def _type(value: ir.Value | None) -> onnx.TypeProto:
    """Return the type of ``value`` as a TypeProto; empty if it is unknown."""
    import onnx

    proto = onnx.TypeProto()
    if value is not None and value.type is not None:
        ir.serde.serialize_type_into(proto, value.type)
        if value.shape is not None:
            ir.serde.serialize_shape_into(proto, value.shape)
    return proto


def _attributes(node: ir.Node, schema: onnx.defs.OpSchema) -> dict[str, ir.Attr]:
    """Return the attributes of ``node``, with defaults of the schema for those that are absent."""
    defaults = {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    return defaults | dict(node.attributes.items())


def _fill_in(graph: ir.Graph, attributes: dict[str, ir.Attr]) -> None:
    """Replace attribute references in ``graph`` by attributes of ``attributes``; drop unresolved
    ones."""
    for node in _nodes(graph):
        for name, attribute in list(node.attributes.items()):
            if not attribute.is_ref():
                continue
            source = attributes.get(attribute.ref_attr_name or "")
            if source is None:
                del node.attributes[name]
            else:
                node.attributes[name] = ir.Attr(name, source.type, source.value)


def _nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the nodes of ``graph`` and its subgraphs."""
    for inner in scope.graphs_below(graph):
        yield from inner
