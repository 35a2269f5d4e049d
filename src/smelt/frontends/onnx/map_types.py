"""Map types, which scikit-learn classifiers return, are removed on load and restored on save."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx
import onnx_ir as ir

from smelt.frontends.onnx.checks.walk import Scopes, scopes
from smelt.ir import scope
from smelt.ir.onnx_ir_log import silent_onnx_ir
from smelt.ir.opaque_types import OpaqueType, opaque_type_of, set_opaque_type

Types = Mapping[str, OpaqueType]
"""Removed types, by the names of the values."""


def without_map_types(
    proto: onnx.ModelProto, proto_scopes: Scopes
) -> tuple[onnx.ModelProto, Types]:
    """Return ``proto`` without map types, and those types by the names of the values.

    ``proto_scopes`` are the scopes of ``proto``, which is copied only if it has map types.
    """
    types = {info.name: _opaque(info.type) for info in _infos(proto_scopes) if _has_map(info.type)}
    if not types:
        return proto, types
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for info in _infos(scopes(copy)):
        if info.name in types:
            info.ClearField("type")
    return copy, types


def note_map_types(model: ir.Model, types: Types) -> None:
    """Record in the values of ``model`` the types that were removed."""
    if not types:
        return
    for value in scope.values(model):
        type_ = types.get(value.name or "")
        if type_ is not None:
            set_opaque_type(value, type_)


def proto_of(model: ir.Model) -> onnx.ModelProto:
    """Return ``model`` as protobuf, with the removed types restored."""
    with silent_onnx_ir():
        proto = ir.to_proto(model)
    for function in proto.functions:
        _drop_inner_types(function.node)
    has_subgraphs = len(list(scope.graphs(model))) > 1
    graphs = [inner.graph for inner in scopes(proto)] if has_subgraphs else [proto.graph]
    for graph in graphs:
        if graph is not None:
            _drop_types_of_constants(graph)
    types_by_name = {value.name: opaque_type_of(value) for value in scope.values(model)}
    types = {name: type_ for name, type_ in types_by_name.items() if type_ is not None}
    if types:
        for info in _infos(scopes(proto)):
            if info.name in types:
                info.type.ParseFromString(types[info.name].data)
    return proto


def _drop_inner_types(nodes: Iterable[onnx.NodeProto]) -> None:
    """Drop the types of values in the subgraphs of a function's ``nodes``.

    ONNX Runtime renames values when it inlines a function. But it reads such a type as that of a
    value of the main graph with the same name, and refuses the model if the two types differ.
    """
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        graphs = [attribute.g] if attribute.HasField("g") else []
        for graph in (*graphs, *attribute.graphs):
            del graph.value_info[:]
            _drop_inner_types(graph.node)


def _drop_types_of_constants(graph: onnx.GraphProto) -> None:
    """Drop the declared types of initializers, whose tensors have types.

    Tools that replace an initializer, such as onnxruntime.quantization, leave its old declaration,
    which then contradicts the type of the tensor.
    """
    constants = {tensor.name for tensor in graph.initializer}
    remaining = [info for info in graph.value_info if info.name not in constants]
    if len(remaining) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(remaining)


def _infos(proto_scopes: Scopes) -> Iterator[onnx.ValueInfoProto]:
    """Yield all declarations of values."""
    for place in proto_scopes:
        owner = place.graph
        if owner is not None:
            yield from (*owner.input, *owner.output, *owner.value_info)
        elif place.function is not None:
            yield from place.function.value_info


def _has_map(type_: onnx.TypeProto) -> bool:
    """True if the type is, or contains, a map."""
    kind = type_.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return _has_map(getattr(type_, kind).elem_type)
    return bool(kind == "map_type")


def _opaque(type_: onnx.TypeProto) -> OpaqueType:
    """Return the type as bytes and as text."""
    return OpaqueType(type_.SerializeToString(deterministic=True), _text(type_))


def _text(type_: onnx.TypeProto) -> str:
    """Return a type as text, ``sequence(map(int64,float))``."""
    kind = type_.WhichOneof("value")
    if kind == "map_type":
        key = ir.DataType(type_.map_type.key_type).name.lower()
        return f"map({key},{_text(type_.map_type.value_type)})"
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.removesuffix('_type')}({_text(getattr(type_, kind).elem_type)})"
    if kind == "tensor_type":
        return ir.DataType(type_.tensor_type.elem_type).name.lower()
    return "?"
