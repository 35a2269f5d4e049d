"""The error for a node that fails in every run because of its operands or attributes."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import InvalidModel

FIX = "export the model again, or correct these shapes or the attributes of the node"


def contradiction(
    node: ir.Node, why: str, what: str = "shapes contradict each other", fix: str = FIX
) -> InvalidModel:
    """Return the error E317 with the node, the shapes of its operands, and the violated
    condition."""
    operands = ", ".join(_described(value) for value in node.inputs if value is not None)
    return InvalidModel(
        "E317",
        what,
        at=f"node {node.name!r} ({node.op_type})",
        why=f"{why}; operands: {operands}" if operands else why,
        fix=fix,
    )


def _described(value: ir.Value) -> str:
    """Return ``value`` for a message, as ``x [N, 4]``."""
    dims = "?" if value.shape is None else ", ".join(map(str, value.shape.dims))
    return f"{value.name} [{dims}]"
