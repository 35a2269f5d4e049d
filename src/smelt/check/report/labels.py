"""Write the lines of text inside a node's box: its weights by shape, then its attributes."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from smelt.check.report.shown import shown
from smelt.ir import constants, opset, text
from smelt.operators import find

WIDTH = 30
"""The longest line in a node's box, in characters, unless a single weight or attribute is
longer.
"""

MOST = 3
"""The most lines in a node's box; the details beside the graph list all weights and attributes."""

Weight = Callable[[ir.Value], str | None]
"""Returns the shape or the elements of a constant as text; None for other values."""


def lines_of(node: ir.Node, version: int, weight: Weight) -> list[str]:
    """Return at most ``MOST`` lines: constant inputs by their formal names, then attributes.

    ``version`` is the opset that the model imports for the domain of ``node``. Attributes with
    their default value are left out.
    """
    formal = _formal_names(node.domain, node.op_type, version)
    parts = []
    for index, value in enumerate(node.inputs):
        weight_text = weight(value) if value is not None else None
        if weight_text is not None:
            name = formal[min(index, len(formal) - 1)] if formal else f"input {index}"
            parts.append(f"{name} {weight_text}")
    for name, attr in node.attributes.items():
        attribute_text = text.attribute(attr)
        if attribute_text is not None and not _is_usual(node, name, version):
            parts.append(f"{name} {_type_name(name, attribute_text)}")
    return _lines([_cut_text(part) for part in parts])


def _cut_text(part: str) -> str:
    """Return ``part`` with invisible characters escaped, cut to a little over ``WIDTH``."""
    limit = WIDTH + 6
    return shown(part) if len(part) <= limit else f"{shown(part[:limit])}…"


def _lines(parts: list[str]) -> list[str]:
    """Return ``parts`` joined to lines of at most ``WIDTH`` characters, cut to ``MOST`` lines."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= WIDTH:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines if len(lines) <= MOST else [*lines[: MOST - 1], f"{lines[MOST - 1]} …"]


def _formal_names(domain: str, op_type: str, version: int) -> list[str]:
    """Return the names that the schema or the declaration gives the inputs of an operator."""
    schema = opset.schema(op_type, version, domain)
    if schema is not None:
        return [parameter.name for parameter in schema.inputs]
    declaration = find(domain, op_type)
    return [name.rstrip("?") for name in declaration.inputs] if declaration is not None else []


def _is_usual(node: ir.Node, name: str, version: int) -> bool:
    """True if an attribute has its default value, or a value that needs no mention.

    These are strides and dilations of 1, pads of 0, and a kernel size that the constant weight
    shows.
    """
    value = node.attributes[name].value
    if name in ("strides", "dilations"):
        return all(item == 1 for item in value)
    if name == "pads":
        return not any(value)
    if name == "kernel_shape" and len(node.inputs) > 1:
        return constants.is_constant(node.inputs[1])
    default = opset.default_attribute(node.op_type, name, version, node.domain)
    return bool(value == default)


def _type_name(name: str, attribute_text: str) -> str:
    """Return the element type's name if ``name`` is ``to`` or ``dtype``, else
    ``attribute_text``.
    """
    if name not in ("to", "dtype"):
        return attribute_text
    names = {str(int(dtype)): dtype.name.lower() for dtype in ir.DataType}
    return names.get(attribute_text, attribute_text)
