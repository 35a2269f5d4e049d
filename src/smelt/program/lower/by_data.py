"""Tells which values are data-dependent, and which follow from sizes and constants."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import constants

SIZES = ("Shape", "Size")
"""Operators that read sizes of their operand, not its elements."""


class ByData:
    """A test whether elements of a model input decide the elements of a value; call it with the
    value.

    Answers are cached, so that all values of a graph are visited once.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def __call__(self, value: ir.Value | None) -> bool:
        """True if ``value`` depends on data; operands are decided first, without recursion."""
        pending = [value] if value is not None else []
        while pending:
            unseen = self._look(pending[-1])
            pending += unseen
            if not unseen:
                pending.pop()
        return value is not None and self._known[value]

    def _look(self, value: ir.Value) -> list[ir.Value]:
        """Return the operands of ``value`` that must be visited first; empty once the answer is
        known."""
        node = value.producer()
        if value in self._known:
            return []
        if constants.tensor_of(value) is not None or (node and node.op_type in SIZES):
            self._known[value] = False
        elif node is None or _has_graphs(node):
            self._known[value] = True
        else:
            operands = [operand for operand in node.inputs if operand is not None]
            unseen = [operand for operand in operands if operand not in self._known]
            if unseen:
                return unseen
            self._known[value] = any(self._known[operand] for operand in operands)
        return []


def _has_graphs(node: ir.Node) -> bool:
    """True if an attribute of ``node`` is a graph."""
    return any(attr.type == ir.AttributeType.GRAPH for attr in node.attributes.values())
