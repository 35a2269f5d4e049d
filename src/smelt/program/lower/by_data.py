"""Tells which values are data-dependent, and which follow from sizes and constants."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import constants

SIZES = ("Shape", "Size")
"""Operators that read sizes of their operand, not its elements."""


class ByData:
    """Call it with a value: True if the elements of the value depend on those of a model input.

    The elements of any other value follow from constants and from sizes. Answers are cached, so
    that each value of a graph is visited once.
    """

    def __init__(self) -> None:
        self._known: dict[ir.Value, bool] = {}

    def __call__(self, value: ir.Value | None) -> bool:
        """True if ``value`` depends on data. Operands are decided first; a deep graph needs no
        recursion.
        """
        pending = [value] if value is not None else []
        while pending:
            unseen = self._look(pending[-1])
            pending += unseen
            if not unseen:
                pending.pop()
        return value is not None and self._known[value]

    def _look(self, value: ir.Value) -> list[ir.Value]:
        """Decide ``value``, or return the operands that must be decided first.

        An inner graph may read anything, so its node counts as data-dependent.
        """
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
