"""``smelt.ConcatInterleave``: interleaves tensors of one shape along an axis.

Element ``i`` along ``axis`` of input ``j`` of ``n`` moves to index ``i * n + j``, so the axis grows
from ``C`` to ``n * C``; a plain Concat would put it at ``j * C + i``. Channel shuffles use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result


def axis_of(attributes: Attributes, rank: int) -> int:
    """Return the non-negative axis; raises ValueError if it does not fit ``rank``."""
    axis = attributes["axis"]
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"axis {axis} does not fit rank {rank}")
    return axis % rank


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of the inputs, with ``axis`` multiplied by their number."""
    values = [value for value in inputs if value is not None]
    if not values or len(values) < len(inputs):
        raise ValueError("ConcatInterleave takes one operand or more, none absent")
    if len({value.dtype for value in values if value.dtype is not None}) > 1:
        raise ValueError("the element types of the operands differ")
    dtype = next((value.dtype for value in values if value.dtype is not None), None)
    shapes = [value.shape.dims for value in values if value.shape is not None]
    if not shapes:
        return (Result(dtype, None),)
    first = shapes[0]
    if any(len(dims) != len(first) for dims in shapes):
        raise ValueError("the ranks of the operands differ")
    dims = [_common_size(column) for column in zip(*shapes, strict=True)]
    axis = axis_of(attributes, len(first))
    dims[axis] = dims[axis] * len(values)
    return (Result(dtype, ir.Shape(dims)),)


def _common_size(dims: Sequence[Dim]) -> Dim:
    """Return the common size of all operands; raises ValueError if sizes differ."""
    sizes = {dim for dim in dims if isinstance(dim, int)}
    if len(sizes) > 1:
        raise ValueError(f"sizes {sorted(sizes)} of the operands differ")
    return sizes.pop() if sizes else dims[0]


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the interleaved array: stacked behind the axis, then both axes merged."""
    arrays = [array for array in inputs if array is not None]
    shape = list(arrays[0].shape)
    axis = axis_of(attributes, len(shape))
    shape[axis] *= len(arrays)
    return (np.stack(arrays, axis + 1).reshape(shape),)


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build Unsqueeze, Concat and Reshape; the target shape is computed at run time."""
    values = [value for value in inputs if value is not None]
    shape = values[0].shape if values else None
    if shape is None:
        return None
    axis = axis_of(attributes, len(shape))
    next_axis = b.const_i64([axis + 1])
    stacked = b.op("Concat", *(b.op("Unsqueeze", v, next_axis) for v in values), axis=axis + 1)
    factors = [len(values) if index == axis else 1 for index in range(len(shape))]
    target = b.op("Mul", b.op("Shape", values[0]), b.const_i64(factors))
    # A 0 in the target shape is an empty dim; without allowzero it would copy a dim of `stacked`.
    zeros = 1 if b.model.opset_imports.get("", 1) >= 14 else None
    return (b.op("Reshape", stacked, target, allowzero=zeros),)


OPERATOR = Operator(
    domain="smelt",
    name="ConcatInterleave",
    summary="Tensors of one shape take turns along an axis",
    inputs=("x",),
    variadic=True,
    outputs=("y",),
    attributes=(Attribute("axis", ir.AttributeType.INT, required=True),),
    infer=infer,
    reference=reference,
    body=body,
)
