"""An Einsum with an empty operand, for some of which ONNX Runtime aborts the process.

The runtime divides by the size of the last dim of an operand that it transposes for a product (seen
in 1.31). A sum over nothing is 0, so the replacement builds zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.contraction import parse
from smelt.operators.declare import Attributes


def has_empty_operand(node: ir.Node) -> bool:
    """True if ``node`` is an Einsum of operands of known ranks, and one of them is empty."""
    shapes = [None if value is None else value.shape for value in node.inputs]
    known_shapes = [shape for shape in shapes if shape is not None]
    empty = any(dim == 0 for shape in known_shapes for dim in shape)
    return (
        node.op_type == "Einsum" and not node.domain and empty and len(known_shapes) == len(shapes)
    )


def zeros(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build the result of such an Einsum; None for an equation that does not fit."""
    values = [value for value in inputs if value is not None]
    shapes = [value.shape.dims for value in values if value.shape is not None]
    try:
        equation = parse(str(attributes["equation"]), [len(shape) for shape in shapes])
    except ValueError:
        return None
    sizes: dict[str, ir.Value] = {}
    for value, term, shape in zip(values, equation.terms, shapes, strict=True):
        for axis, (label, dim) in enumerate(zip(term, shape, strict=True)):
            if label not in equation.out or (label in sizes and dim == 1):
                continue
            index = b.const_i64([axis])
            sizes[label] = (
                b.const_i64([dim])
                if isinstance(dim, int)
                else b.op("Gather", b.op("Shape", value), index)
            )
    result_sizes = [sizes[label] for label in equation.out]
    result = b.op("Concat", *result_sizes, axis=0) if result_sizes else b.const_i64([])
    return (b.op("Expand", b.const_like(0, values[0]), result),)
