"""Which elements of small vectors shape inference may go on tracking."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.floats import float_info, is_float
from smelt.ir.shape_context import forget_elements

MAX_ELEMENTS = 1024
"""Elements of a vector whose values are tracked; no shape is longer, but an attack may be."""


def check_elements(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Stop tracking elements that are too many, or not those that ``value`` holds.

    The library drops an element from Slices that run backwards past the start, and carries
    integers through types that are too narrow for them.
    """
    elements = context.get_symbolic_value(value)
    if elements is None:
        return
    shape = value.shape
    fits = shape is not None and shape.is_static() and prod(shape.numpy()) == len(elements)
    if fits and len(elements) <= MAX_ELEMENTS and all(_holds(value.dtype, e) for e in elements):
        return
    forget_elements(context, value)
    value.const_value = None


_OF_SIZES = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.UINT64, ir.DataType.DOUBLE)


def _holds(dtype: ir.DataType | None, element: int | ir.SymbolicDim) -> bool:
    """True if ``dtype`` has the integer; of sizes, any that memory can hold."""
    if dtype is None:
        return True
    if isinstance(element, ir.SymbolicDim):
        return dtype in _OF_SIZES
    if is_float(dtype.numpy()):
        limit: int = 2 ** (float_info(dtype.numpy()).nmant + 1)
        return abs(element) <= limit
    if dtype.numpy().kind not in "iu":
        return False
    limits = np.iinfo(dtype.numpy())
    return bool(limits.min <= element <= limits.max)
