"""Check attributes in the protobuf: unique names, and a value of the stated type."""

from __future__ import annotations

import onnx

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.walk import Scopes, place_of_node

STANDARD = ("", "ai.onnx", "ai.onnx.ml")
"""Domains whose string attributes are text; other domains store binaries in them."""

FIELDS = {
    getattr(onnx.AttributeProto, kind): field
    for kind, field in (
        *(("FLOAT", "f"), ("INT", "i"), ("STRING", "s"), ("TENSOR", "t"), ("GRAPH", "g")),
        *(("SPARSE_TENSOR", "sparse_tensor"), ("TYPE_PROTO", "tp"), ("FLOATS", "floats")),
        *(("INTS", "ints"), ("STRINGS", "strings"), ("TENSORS", "tensors")),
        *(("GRAPHS", "graphs"), ("SPARSE_TENSORS", "sparse_tensors")),
        ("TYPE_PROTOS", "type_protos"),
    )
}
"""The field that holds the value of each attribute type."""

_VALUES = frozenset(FIELDS.values())
_MESSAGES = frozenset({"t", "g", "sparse_tensor", "tp"})
"""Fields that must be present; other fields may be absent, because proto3 omits 0 and ""."""


def check_attributes(scopes: Scopes) -> None:
    """Raise InvalidModel E324 for a malformed attribute, E315 for one that is not text."""
    for scope in scopes:
        if not scope.attributes:
            continue
        for node in scope.nodes:
            names = [attribute.name for attribute in node.attribute]
            if len(set(names)) < len(names):
                repeated = next(name for name in names if names.count(name) > 1)
                raise _malformed_attribute(node, f"it has the attribute {repeated!r} twice")
            for attribute in node.attribute:
                why = _fault_of_attribute(attribute, scope.function)
                if why:
                    raise _malformed_attribute(node, why)
                if node.domain in STANDARD:
                    _check_text(node, attribute)


def _fault_of_attribute(attribute: onnx.AttributeProto, function: onnx.FunctionProto | None) -> str:
    """Return why ``attribute`` is malformed, "" if it is valid."""
    if not attribute.name:
        return "an attribute has no name"
    present = {field.name for field, _ in attribute.ListFields()}
    values = present & _VALUES
    if "type" not in present or attribute.type not in FIELDS:
        return f"the attribute {attribute.name!r} has no type"
    if attribute.ref_attr_name:
        return _fault_of_reference(attribute, values, function)
    expected = FIELDS[attribute.type]
    if values - {expected}:
        return f"the attribute {attribute.name!r} holds {', '.join(sorted(values))}, not {expected}"
    if expected in _MESSAGES and not values:
        return f"the attribute {attribute.name!r} has no value"
    return ""


def _fault_of_reference(
    attribute: onnx.AttributeProto, values: set[str], function: onnx.FunctionProto | None
) -> str:
    """Return why a reference to a function's attribute is malformed, "" if it is valid."""
    reference = f"the attribute {attribute.name!r} refers to {attribute.ref_attr_name!r}"
    if function is None:
        return f"{reference}, outside any function"
    if values:
        return f"{reference} and also has a value"
    declared = {*function.attribute, *(item.name for item in function.attribute_proto)}
    if attribute.ref_attr_name not in declared:
        return f"{reference}, which function {function.name!r} does not have"
    return ""


def _check_text(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> None:
    """Raise InvalidModel E315 for text that is not UTF-8."""
    for text in (attribute.s, *attribute.strings):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            what = f"the attribute {attribute.name!r} is not UTF-8 text"
            raise InvalidModel(
                "E315",
                what,
                at=place_of_node(node),
                why="ONNX demands text in UTF-8",
                fix="export the model again, or correct the node",
            ) from error


def _malformed_attribute(node: onnx.NodeProto, why: str) -> InvalidModel:
    """Return E324 for an attribute of ``node``."""
    return InvalidModel(
        "E324",
        "an attribute is malformed",
        at=place_of_node(node),
        why=why,
        fix="export the model again, or correct the node",
    )
