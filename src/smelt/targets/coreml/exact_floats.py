"""Find floats that are computed from integers beyond float16 alone; they stay in float32.

A uniform random number is such an integer, divided by 2**23. float16 would hold neither the integer
nor the number: of all numbers above 0.9998, it has 1 only, whose logarithm is 0.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import tensor_of
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.value_facts.integer_formulas import type_limits
from smelt.targets.coreml.half_constants import LARGEST_HALF

INT32 = ir.DataType.INT32


def exact_nodes(graph: ir.Graph) -> frozenset[ir.Node]:
    """Return the Casts of such integers, and the nodes whose other float operands are constants.

    An int32 without known bounds is no such integer, because most of them are small.
    """
    bounds, found = IntegerBounds(), set[ir.Node]()
    for node in scope.nodes_below(graph):
        if node.op_type in scope.GRAPH_CARRIERS:
            continue
        if node.op_type == "Cast" and not node.domain and node.inputs[0] is not None:
            if _is_beyond_half(bounds, node.inputs[0]) and _is_float(node.outputs[0]):
                found.add(node)
            continue
        operands = [value for value in node.inputs if value is not None and _is_float(value)]
        computed = [value.producer() for value in operands if tensor_of(value) is None]
        if computed and found.issuperset(computed):
            found.add(node)
    return frozenset(found)


def _is_float(value: ir.Value) -> bool:
    """True if ``value`` holds floats."""
    return value.dtype is not None and value.dtype.is_floating_point()


def _is_beyond_half(bounds: IntegerBounds, value: ir.Value) -> bool:
    """True if ``value`` is an int32 with known bounds, one of which exceeds float16."""
    known = bounds.of(value) if value.dtype == INT32 else None
    if known is None or known == type_limits(INT32):
        return False
    return max(abs(number) for number in known) > LARGEST_HALF
