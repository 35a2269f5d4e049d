"""Shape rules of reductions: the rank for run-time axes, and products and sums of known sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import TypeAlias

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.shapes.slice_operands import is_computed_input


def infer_reduction(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer the rank of a reduction with run-time axes from their number; False for other nodes.

    The remaining dims are unknown. No axes mean all, or none with ``noop_with_empty_axes``.
    """
    if not is_computed_input(node, 1):
        return False
    source, axes = node.inputs[0], node.inputs[1]
    if source is None or axes is None or source.shape is None or axes.shape is None:
        return False
    if len(axes.shape) != 1 or not isinstance(axes.shape[0], int):
        return False
    rank, count = len(source.shape), axes.shape[0]
    keep = _int(node, "keepdims", 1)
    if count > rank:
        return False
    if count == 0 and _int(node, "noop_with_empty_axes", 0):
        shape = source.shape
    elif count in (0, rank):
        shape = ir.Shape([1] * rank if keep else [])
    else:
        result_rank = rank if keep else rank - count
        shape = ir.Shape([context.new_symbolic_dim() for _ in range(result_rank)])
    context.set_shape_and_dtype(node.outputs[0], shape, source.dtype)
    return True


Rule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], None]

MOST_TERMS = 16
"""The most sizes without a number that are added or multiplied: no shape has so many dims, and the
time is quadratic in their number."""


def with_sizes(library_rule: Rule) -> Rule:
    """Wrap the rule of ReduceProd or ReduceSum so that it also computes with tracked sizes."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then compute the product or sum of known sizes."""
        library_rule(context, node)
        source, result = node.inputs[0], node.outputs[0]
        if source is None or source.shape is None or len(source.shape) != 1:
            return
        elements = context.get_symbolic_value(source)
        is_noop = _int(node, "noop_with_empty_axes", 0)
        if (
            not elements
            or is_noop
            or any(getattr(element, "value", 0) is None for element in elements)
        ):
            return
        if result.shape is None or result.dtype != ir.DataType.INT64:
            return
        if sum(not isinstance(element, int) for element in elements) > MOST_TERMS:
            return
        operator = mul if node.op_type == "ReduceProd" else add
        context.set_symbolic_value(result, [reduce(operator, elements)])

    return infer


def _int(node: ir.Node, name: str, default: int) -> int:
    """Return the integer attribute ``name``, or ``default``."""
    attribute = node.attributes.get(name)
    return default if attribute is None or attribute.is_ref() else attribute.as_int()
