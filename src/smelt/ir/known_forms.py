"""Tells whether a node uses only the features of its operator that smelt's code knows.

Rules, passes and lowerings read the inputs, outputs and attributes that an operator had when they
were written. Later versions of ONNX add some, such as the windows of Attention at opset 25, and
code that ignores them computes something else. So a node with unknown features matches no rule, is
left alone by passes that walk graphs, and has no lowering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from smelt.ir import opset

if TYPE_CHECKING:
    import onnx

KNOWN_OPSET = 23
"""The opset for which the code was written. An operator added later is known in its first
version."""

LATER: dict[str, frozenset[str]] = {"SpaceToDepth": frozenset({"mode"})}
"""Attributes of later opsets that all code which reads these operators handles."""

NEWEST_READ = 28
"""The newest supported opset. Up to it, changes to operators beyond attributes, inputs and outputs
are only additional element types, or are handled. Newer models are refused."""


@dataclass(frozen=True)
class _Form:
    """The attributes of an operator over all known versions, and its largest numbers of ports."""

    attributes: frozenset[str]
    max_inputs: int
    max_outputs: int


def is_known(node: ir.Node) -> bool:
    """True if ``node`` uses only known attributes, inputs and outputs of its operator.

    Operators of other domains have no unknown features. An attribute that refers to an attribute of
    the enclosing function is always unknown, because its value is.
    """
    form = None if node.domain else _form(node.op_type)
    attributes = node.attributes.data
    if form is None:
        return not any(attr.is_ref() for attr in attributes.values())
    for name, attr in attributes.items():
        if attr.is_ref() or (name not in form.attributes and not _is_default(node, attr)):
            return False
    if len(node.inputs) > form.max_inputs and _count_present(node.inputs) > form.max_inputs:
        return False
    return len(node.outputs) <= form.max_outputs


def unknown_part(node: ir.Node) -> str:
    """Return which part of ``node`` is unknown, for messages; empty if ``node`` is known."""
    form = None if node.domain else _form(node.op_type)
    for name, attr in node.attributes.items():
        if attr.is_ref():
            return f"attribute {name!r}, which refers to an attribute of the enclosing function"
        if form is not None and name not in form.attributes and not _is_default(node, attr):
            return f"attribute {name!r}"
    if form is None:
        return ""
    if _count_present(node.inputs) > form.max_inputs:
        return f"input {form.max_inputs}"
    return f"output {form.max_outputs}" if len(node.outputs) > form.max_outputs else ""


def _count_present(inputs: Sequence[ir.Value | None]) -> int:
    """Return the number of inputs without trailing absent ones."""
    count = len(inputs)
    while count and inputs[count - 1] is None:
        count -= 1
    return count


@cache
def _form(op_type: str) -> _Form | None:
    """Return everything that versions of an operator up to KNOWN_OPSET have.

    None if ``op_type`` is no operator of ONNX, such as a function of the model.
    """
    versions = list(_versions(op_type))
    if not versions:
        return None
    attributes = {name for version in versions for name in version.attributes}
    return _Form(
        frozenset(attributes) | LATER.get(op_type, frozenset()),
        max(version.max_input for version in versions),
        max(version.max_output for version in versions),
    )


def _versions(op_type: str) -> Iterator[onnx.defs.OpSchema]:
    """Yield the schemas of ``op_type`` up to KNOWN_OPSET, or its first later one."""
    schema = opset.schema(op_type, KNOWN_OPSET)
    if schema is None:
        newer = (opset.schema(op_type, version) for version in range(KNOWN_OPSET, NEWEST_READ + 1))
        first = next((version for version in newer if version is not None), None)
        if first is not None:
            yield first
        return
    while schema is not None:
        yield schema
        schema = (
            opset.schema(op_type, schema.since_version - 1) if schema.since_version > 1 else None
        )


def _is_default(node: ir.Node, attr: ir.Attr) -> bool:
    """True if ``attr`` has its default value at opset ``NEWEST_READ``.

    An attribute that code does not know is harmless with this value: it changes nothing.
    """
    default: Any = opset.default_attribute(node.op_type, attr.name, NEWEST_READ)
    return default is not None and attr.value == default
