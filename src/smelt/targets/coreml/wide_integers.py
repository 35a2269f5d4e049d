"""Find int64 results that may exceed the 32 bits in which Core ML computes them.

Inputs of a package are int32. A result that exceeds 32 bits for all inputs is refused. A result
that may exceed them for some inputs is only reported, because the bounds are not tight.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.value_facts.integer_formulas import FORMULAS, Operand, type_limits
from smelt.targets.coreml.writer import Refused

INT32 = (-(2**31), 2**31 - 1)

GROWING = frozenset({"Add", "CumSum", "Mul", "Neg", "Range", "Sub", "Sum"})
"""Operators whose results may be larger than their operands, with a formula for their bounds."""
UNBOUNDED = frozenset(
    {"Einsum", "MatMul", "Pow", "ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"}
)
"""Operators whose results may be larger than their operands, without such a formula."""


class NarrowBounds(IntegerBounds):
    """Bounds of integers in a package, where an int64 of the model is an int32."""

    def limits(self, value: ir.Value) -> Operand:
        """Return the bounds of the type that ``value`` has in a package."""
        found = super().limits(value)
        return type_limits(ir.DataType.INT32) if value.dtype == ir.DataType.INT64 else found

    def result(self, node: ir.Node) -> Operand:
        """Return the bounds of the result of ``node`` before it is held in 32 bits."""
        formula = FORMULAS[node.op_type]
        operands = [None if value is None else self.of(value) for value in node.inputs]
        return formula(node, operands)


def may_be_too_wide(bounds: NarrowBounds, node: ir.Node) -> bool:
    """True if the int64 result of ``node`` may exceed 32 bits.

    Raises Refused E402 if it does so for all inputs.
    """
    if node.domain or node.outputs[0].dtype != ir.DataType.INT64:
        return False
    if node.op_type in UNBOUNDED:
        return True
    if node.op_type not in GROWING:
        return False
    found = bounds.result(node)
    if found is None:
        return True
    low, high = found
    if low > INT32[1] or high < INT32[0]:
        raise Refused(
            f"its results are between {low} and {high}, beyond 32 bits",
            "use smaller integers; Core ML has none of 64 bits",
            "E402",
        )
    return low < INT32[0] or high > INT32[1]
