"""The error of a node that cannot be lowered."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.ir.provenance import origin_of


def refusal(node: ir.Node | None, why: str, fix: str = "") -> Unsupported:
    """Return the error E201: ``node`` cannot be lowered, for the reason ``why``.

    It names the types of the node's inputs. Without a node, it is the error of the whole model.
    """
    if node is None:
        return Unsupported("E201", "the model cannot be lowered", why=why, fix=fix)
    name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    at = [f"node {node.name or '(no name)'!r}"]
    at += [f"input {i} {_type(v)}" for i, v in enumerate(node.inputs) if v is not None]
    origin = str(origin_of(node))
    if origin != node.name:
        at.append(f"from {origin}")
    return Unsupported(
        "E201",
        f"operator {name} cannot be lowered",
        at=at,
        why=why,
        fix=fix or "correct the node, or use the target 'onnx'",
    )


def _type(value: ir.Value) -> str:
    """Return the element type and shape of ``value`` as text."""
    dtype = value.dtype.name.lower() if value.dtype is not None else "?"
    dims = "?" if value.shape is None else ",".join(str(dim) for dim in value.shape.dims)
    return f"{dtype}[{dims}]"
