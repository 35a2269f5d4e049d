"""Element counts that a model computes from shapes."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir.same_shape import Dim
from smelt.ir.shapes.inference import ShapeInference

COUNTED = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""Floats in which an element count neither overflows nor loses more than its last bits."""

_FROM_INTEGERS = ("Cast", "Reshape", "Squeeze", "Unsqueeze", "Identity")


def size_of(value: ir.Value | None, shapes: ShapeInference) -> Dim | None:
    """Return the size, a product of dims, that the one-element ``value`` holds; None if unknown.

    Follows a float back to the integer it was cast from.
    """
    while value is not None and value.dtype in COUNTED:
        node = value.producer()
        if node is None or node.domain or node.op_type not in _FROM_INTEGERS:
            return None
        value = node.inputs[0]
    elements = shapes.elements(value) if value is not None else None
    return elements[0] if elements is not None and len(elements) == 1 else None


def dim_product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``; 1 for none."""
    product: Dim = 1
    for dim in dims:
        product = dim * product
    return product
