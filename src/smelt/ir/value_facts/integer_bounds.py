"""The least and the greatest element of an integer tensor, propagated from its producers.

``element_ranges.py`` bounds each element of a short vector; this module bounds all elements of a
tensor of any shape together. Sizes of tensors are assumed to be below ``LONGEST``.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.ir.known_forms import KNOWN_OPSET
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.ir.value_facts.integer_formulas import (
    FORMULAS,
    INDEX_BOUNDS,
    Operand,
    hull,
    of_constant,
    type_limits,
    within,
)


class IntegerBounds:
    """Bounds of values of one unchanged model, each computed once."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Operand] = {}
        self._types = ElementTypes(KNOWN_OPSET)

    def of(self, value: ir.Value) -> Operand:
        """Return the bounds of the elements of ``value``; None unless integers or booleans.

        An empty tensor has any bounds. The walk is a loop, because chains of producers may be
        longer than Python's stack.
        """
        pending = [value]
        while pending:
            current = pending[-1]
            unknown = [
                operand for operand in self._dependencies(current) if operand not in self._known
            ]
            if unknown and current not in self._known:
                pending += unknown
                continue
            if current not in self._known:
                self._known[current] = self._computed(current)
            pending.pop()
        return self._known[value]

    def limits(self, value: ir.Value) -> Operand:
        """Return the bounds of the type of ``value``; None if it holds no integers."""
        dtype = self._types.of(value)
        return None if dtype is None else type_limits(dtype)

    def _dependencies(self, value: ir.Value) -> list[ir.Value]:
        """Return the values on whose bounds those of ``value`` depend."""
        node = value.producer()
        if tensor_of(value) is not None or node is None or node.domain:
            return []
        if self.limits(value) is None:
            return []
        if node.op_type == "If":
            branches = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
            return [branch.outputs[value.index() or 0] for branch in branches]
        formula = FORMULAS.get(node.op_type)
        return (
            [] if formula is None else [operand for operand in node.inputs if operand is not None]
        )

    def _computed(self, value: ir.Value) -> Operand:
        """Return the bounds of ``value`` from the known bounds of its operands."""
        tensor = tensor_of(value)
        if tensor is not None:
            return of_constant(tensor)
        node, limits = value.producer(), self.limits(value)
        if node is None or node.domain or limits is None:
            return limits
        if node.op_type in INDEX_BOUNDS:
            return INDEX_BOUNDS[node.op_type](node, value.index() or 0) or limits
        if node.op_type == "If":
            return within(
                hull(*(self._known[operand] for operand in self._dependencies(value))), limits
            )
        formula = FORMULAS.get(node.op_type)
        if formula is None:
            return limits
        operand_bounds = [
            None if operand is None else self._known[operand] for operand in node.inputs
        ]
        return within(formula(node, operand_bounds), limits)
