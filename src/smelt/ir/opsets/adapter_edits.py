"""The edits of a node from which opset adapters are made."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.rewrite import Rewriter


def builder_before(node: ir.Node, rewriter: Rewriter) -> Builder:
    """Return a builder that inserts before ``node`` and stamps new nodes with its origin."""
    return rewriter.builder(node, [node], "raise_opset")


def pop_attribute(node: ir.Node, name: str) -> ir.Attr | None:
    """Remove and return the attribute ``name`` of ``node``; None if it is absent."""
    return node.attributes.pop(name, None)


def set_or_append_input(node: ir.Node, index: int, value: ir.Value | None) -> None:
    """Set input ``index`` of ``node`` to ``value``; missing inputs before it become absent ones.

    Does nothing if ``value`` is None.
    """
    if value is None:
        return
    if len(node.inputs) <= index:
        node.resize_inputs(index + 1)
    node.replace_input_with(index, value)
