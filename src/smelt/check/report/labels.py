"""Write the lines that stand on a node: its weights by shape, then its attributes."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from smelt.check.report.shown import shown
from smelt.ir import constants, opset, text
from smelt.operators import find

WIDTH = 30
"""The longest line of a node, in characters, unless one part is longer."""

MOST = 3
"""How many lines of weights and attributes a node has; its details list all of them."""

Weight = Callable[[ir.Value], str | None]
"""Returns the shape or the elements of a constant as text; None for other values."""


def lines_of(node: ir.Node, version: int, weight: Weight) -> list[str]:
    """Return at most ``MOST`` lines: constant inputs by their formal names, then attributes.

    ``version`` is the opset that the model imports for the domain of ``node``.
    """
    formal = _formal_names(node.domain, node.op_type, version)
    parts = []
    for index, value in enumerate(node.inputs):
        about = weight(value) if value is not None else None
        if about is not None:
            name = formal[min(index, len(formal) - 1)] if formal else f"input {index}"
            parts.append(f"{name} {about}")
    for name, attr in node.attributes.items():
        given = text.attribute(attr)
        if given is not None and not _is_usual(node, name, version):
            parts.append(f"{name} {_type_name(name, given)}")
    return _lines([_cut(part) for part in parts])


def _cut(part: str) -> str:
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
        return [each.name for each in schema.inputs]
    known = find(domain, op_type)
    return [name.rstrip("?") for name in known.inputs] if known is not None else []


def _is_usual(node: ir.Node, name: str, version: int) -> bool:
    """True if an attribute has its default, or says what is so without it.

    Strides and dilations of 1, pads of 0, and the size of a kernel whose weight is constant.
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


def _type_name(name: str, given: str) -> str:
    """Return the name of the element type that ``to`` or ``dtype`` numbers, else ``given``."""
    if name not in ("to", "dtype"):
        return given
    return next((kind.name.lower() for kind in ir.DataType if str(int(kind)) == given), given)
