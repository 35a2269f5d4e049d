"""``QLinearConcat``, ``QLinearWhere``, ``QLinearSoftmax``: selection and Softmax of quantized
bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attributes, Computed, Result, int_of
from smelt.operators.inputs import first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, ints, like_first, operator
from smelt.operators.onnxruntime.microsoft.products import broadcast_dims
from smelt.operators.onnxruntime.microsoft.quantized import dequantized, requantized


def _infer_concat(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of the joined parts, with the sum of their sizes along ``axis``."""
    zero, parts = input_at(inputs, 1), inputs[2::3]
    if len(inputs) % 3 != 2 or None in parts:
        raise ValueError("each part has a scale and a zero point")
    dtype = None if zero is None else zero.dtype
    shapes = [part.shape for part in parts if part is not None and part.shape is not None]
    if not shapes or len(shapes) < len(parts):
        return (Result(dtype, None),)
    dims: list[Dim] = list(shapes[0].dims)
    axis = int_of(attributes, "axis")
    if {len(shape) for shape in shapes} != {len(dims)} or not -len(dims) <= axis < len(dims):
        raise ValueError(
            f"parts of shapes {', '.join(map(str, shapes))} have no common axis {axis}"
        )
    along = [shape[axis] for shape in shapes]
    numbers = [dim for dim in along if isinstance(dim, int)]
    dims[axis] = sum(numbers) if len(numbers) == len(along) else ir.SymbolicDim(None)
    return (Result(dtype, ir.Shape(dims)),)


def _concat(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the concatenated floats, quantized."""
    scale, zero = present(inputs[:2])
    parts = [dequantized(*inputs[i : i + 3]) for i in range(2, len(inputs), 3)]
    joined = np.concatenate(parts, int_of(attributes, "axis"))
    return (requantized(joined, scale, zero, zero.dtype),)


def _concat_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build DequantizeLinear of each part, Concat, QuantizeLinear."""
    triples = (inputs[i : i + 3] for i in range(2, len(inputs), 3))
    parts = [b.op("DequantizeLinear", *triple) for triple in triples]
    joined = b.op("Concat", *parts, axis=int_of(attributes, "axis"))
    return (b.op("QuantizeLinear", joined, *inputs[:2]),)


def _infer_where(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of x, with the shape to which all three operands broadcast."""
    condition, x, y = first(inputs), input_at(inputs, 1), input_at(inputs, 4)
    shapes = [None if value is None else value.shape for value in (condition, x, y)]
    known_dims = [list(shape.dims) for shape in shapes if shape is not None]
    shape = ir.Shape(broadcast_dims(*known_dims)) if len(known_dims) == 3 else None
    return (Result(None if x is None else x.dtype, shape),)


def _where(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return x where the condition is true, else y, quantized by the scale of the result."""
    condition, x, x_scale, x_zero, y, y_scale, y_zero, scale, zero = inputs
    assert zero is not None
    selected = np.where(
        np.asarray(condition),
        dequantized(x, x_scale, x_zero),
        dequantized(y, y_scale, y_zero),
    )
    return (requantized(selected, scale, zero, zero.dtype),)


def _where_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build both operands requantized by the scale of the result, then Where."""
    last = inputs[7:9]
    sides = (b.op("DequantizeLinear", *inputs[i : i + 3]) for i in (1, 4))
    return (b.op("Where", inputs[0], *(b.op("QuantizeLinear", side, *last) for side in sides)),)


def _axes(attributes: Attributes, rank: int) -> tuple[int, ...]:
    """Return the axes that Softmax sums over: one axis, or before opset 13 all from it on."""
    axis = int_of(attributes, "axis") % max(rank, 1)
    return (axis,) if int_of(attributes, "opset") >= 13 else tuple(range(axis, rank))


def _softmax(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return Softmax of the dequantized input, quantized."""
    x, scale, zero, y_scale, y_zero = inputs
    assert x is not None
    real = dequantized(x, scale, zero)
    axes = _axes(attributes, x.ndim)
    power = np.exp(real - real.max(axes, keepdims=True, initial=-np.inf))
    return (requantized(power / power.sum(axes, keepdims=True), y_scale, y_zero, x.dtype),)


def _softmax_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build Softmax in float32 between DequantizeLinear and QuantizeLinear."""
    x = first(inputs)
    assert x.shape is not None
    real = b.op("DequantizeLinear", *present(inputs[:3]))
    axes = _axes(attributes, len(x.shape))
    if len(axes) == 1:
        result = b.op("Softmax", real, axis=axes[0])
    else:
        flat = b.op("Softmax", b.op("Flatten", real, axis=axes[0]), axis=1)
        result = b.op("Reshape", flat, b.op("Shape", x))
    return (b.op("QuantizeLinear", result, *inputs[3:5]),)


OPERATORS = (
    operator(
        "QLinearConcat",
        "Concat of quantized tensors, each with its own scale",
        inputs=("Y_scale", "Y_zero_point", "inputs"),
        outputs=("Y",),
        variadic=True,
        attributes=ints(axis=None),
        infer=_infer_concat,
        reference=_concat,
        body=_concat_body,
    ),
    operator(
        "QLinearWhere",
        "Where of quantized numbers",
        inputs=(
            *("condition", "X", "x_scale", "x_zero_point", "Y", "y_scale", "y_zero_point"),
            *("z_scale", "z_zero_point"),
        ),
        outputs=("Z",),
        infer=_infer_where,
        reference=_where,
        body=_where_body,
    ),
    operator(
        "QLinearSoftmax",
        "Softmax of quantized numbers, with the axis as in opset ``opset``",
        inputs=("X", "X_scale", "x_zero_point?", "y_scale", "y_zero_point"),
        outputs=("Y",),
        attributes=ints(opset=None, axis=-1),
        least_ranks={"X": 1},
        infer=like_first(),
        reference=_softmax,
        body=_softmax_body,
    ),
)
