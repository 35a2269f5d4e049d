"""Attributes of operators that ONNX lacks: their declaration, and their values at a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import InvalidModel

AttributeValue: TypeAlias = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | None
)
Attributes: TypeAlias = Mapping[str, AttributeValue]


def int_of(attributes: Attributes, name: str) -> int:
    """Return the value of an INT attribute."""
    value = attributes[name]
    assert isinstance(value, int)
    return value


def ints_of(attributes: Attributes, name: str) -> tuple[int, ...]:
    """Return the values of an INTS attribute, a tuple, or a list if it was read from JSON."""
    value = attributes[name]
    assert isinstance(value, tuple | list)
    return tuple(int(item) for item in value)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its ONNX type, and its default unless it is ``required``."""

    name: str
    type: ir.AttributeType
    default: AttributeValue = None
    required: bool = False


def value_at(node: ir.Node, attribute: Attribute, at: str) -> AttributeValue:
    """Return the value of ``attribute`` at ``node`` or its default; raises InvalidModel E330."""
    set_attribute = node.attributes.get(attribute.name)
    if set_attribute is None:
        if attribute.required:
            raise InvalidModel(
                "E330",
                f"attribute {attribute.name!r} is missing",
                at=at,
                why="the operator declares no default for it",
                fix=f"set the attribute {attribute.name!r} on the node",
            )
        return attribute.default
    if set_attribute.type != attribute.type or set_attribute.is_ref():
        problem = f"attribute {attribute.name!r} is not of type {attribute.type.name}"
        raise InvalidModel(
            "E330",
            problem,
            at=at,
            why="the declaration of the operator gives the type of each attribute",
            fix="set the attribute to a value of that type",
        )
    value: AttributeValue | list[int] | list[float] | list[str] = set_attribute.value
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]
