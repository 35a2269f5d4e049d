"""Limits on the elements of small vectors that shape inference tracks."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.errors import ResourceLimit
from smelt.ir.floats import float_info, is_float
from smelt.ir.shapes.inferred_facts import forget_elements
from smelt.ir.symbolic_dims.dim_texts import LONGEST

MAX_ELEMENTS = 1024
"""Longest vector whose elements are tracked; no shape is longer, but a hostile file may be."""


LARGEST = 2**63 - 1
"""The largest size that a model can express."""


def check_sizes(context: ShapeInferenceContext, node: ir.Node, value: ir.Value) -> None:
    """Replace sizes of ``value`` whose text is too long by new symbols.

    Raises ResourceLimit E501 for sizes beyond int64. Records an error for negative sizes, such as
    those of a Pad that removes more elements than there are.
    """
    if value.shape is None:
        return
    for dim in value.shape.dims:
        if isinstance(dim, int):
            if dim < 0:
                value.shape = None
                least = _size_text(dim) if dim > -(2**63) else "far less than 0"
                message = f"{value.name!r} would have {least} elements along one axis"
                context.record_error(node, message)
                return
            if dim > LARGEST:
                raise ResourceLimit(
                    "E501",
                    f"a value would have {_size_text(dim)} elements along one axis",
                    at=f"node {node.name!r} ({node.op_type}), value {value.name!r}",
                    why="sizes are 64-bit numbers",
                    fix="correct the inputs of the node that set the size",
                )
        elif dim.value is not None and len(dim.value) > LONGEST and not dim.value.isidentifier():
            value.shape = ir.Shape([_shortened(context, dim_) for dim_ in value.shape.dims])
            return


def _size_text(size: int) -> str:
    """Return ``size`` with thousands separators; huge ones as ``more than 2^99``."""
    return f"{size:,}" if size < 2**80 else f"more than 2^{size.bit_length() - 1}"


def _shortened(context: ShapeInferenceContext, dim: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
    """Return ``dim``, or a new symbol if its text is too long."""
    is_long = not isinstance(dim, int) and len(dim.value or "") > LONGEST
    return context.new_symbolic_dim() if is_long else dim


def check_elements(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Stop tracking elements that are too many, or that cannot be the elements of ``value``.

    The library, onnx-shape-inference, loses an element of a Slice that runs backwards past the
    start, and tracks integers through types that are too narrow for them.
    """
    elements = context.get_symbolic_value(value)
    if elements is None:
        return
    shape = value.shape
    fits = shape is not None and shape.is_static() and prod(shape.numpy()) == len(elements)
    if fits and len(elements) <= MAX_ELEMENTS and all(_can_hold(value.dtype, e) for e in elements):
        return
    forget_elements(context, value)


_OF_SIZES = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.UINT64, ir.DataType.DOUBLE)


def _can_hold(dtype: ir.DataType | None, element: int | ir.SymbolicDim) -> bool:
    """True if a tensor of ``dtype`` can hold ``element`` exactly.

    A symbolic size is assumed to fit integers of 32 or more bits and doubles.
    """
    if dtype is None:
        return True
    if isinstance(element, ir.SymbolicDim):
        return dtype in _OF_SIZES and len(element.value or "") <= LONGEST
    if is_float(dtype.numpy()):
        limit: int = 2 ** (float_info(dtype.numpy()).nmant + 1)
        return abs(element) <= limit
    if dtype.numpy().kind not in "iu":
        return False
    limits = np.iinfo(dtype.numpy())
    return bool(limits.min <= element <= limits.max)
