"""``QuantizeLinear`` and ``DequantizeLinear`` of ONNX Runtime, for types that old opsets lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Result
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, operator
from smelt.operators.onnxruntime.microsoft.quantized import dequantized, requantized

AXIS = (Attribute("axis", ir.AttributeType.INT),)
OF_ALL_OPSETS = frozenset({ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT32})
"""Integer types that ONNX's operators take in every opset."""

SPELLED_OUT = frozenset({ir.DataType.UINT16, ir.DataType.INT16})
"""Integer types whose bodies are arithmetic on floats below opset 21."""

FLOAT = ir.DataType.FLOAT


def _along_axis(
    array: np.ndarray | None, x: np.ndarray, attributes: Attributes
) -> np.ndarray | None:
    """Return ``array`` in a shape that broadcasts against ``x``; None if it is absent.

    It holds one number, or one per index of the attribute ``axis``.
    """
    axis = attributes["axis"]
    if array is None or array.size == 1 or not isinstance(axis, int):
        return array if array is None else array.reshape(())
    shape = [1] * x.ndim
    shape[axis] = -1
    return array.reshape(shape)


def _infer_quantize(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the shape of the input in the type of the zero point, by default uint8."""
    zero = input_at(inputs, 2)
    return (Result(ir.DataType.UINT8 if zero is None else zero.dtype, first(inputs).shape),)


def _infer_dequantize(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the shape of the input in the type of the scale."""
    scale = input_at(inputs, 1)
    return (Result(None if scale is None else scale.dtype, first(inputs).shape),)


def _quantize(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the input in steps of the scale, plus the zero point."""
    x, scale = present(inputs[:2])
    zero = input_at(inputs, 2)
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    step = _along_axis(scale.astype(np.float32), x, attributes)
    return (requantized(x.astype(np.float32), step, _along_axis(zero, x, attributes), dtype),)


def _dequantize(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the floats that the integers stand for, in the type of the scale."""
    x, scale = present(inputs[:2])
    zero = input_at(inputs, 2)
    step = _along_axis(scale.astype(np.float32), x, attributes)
    real = dequantized(x, step, _along_axis(zero, x, attributes))
    with np.errstate(over="ignore"):  # half floats end at 65504
        return (real.astype(scale.dtype),)


def _body(op: str, integer_input: int) -> Any:
    """Return a body: ONNX's operator if the opset has it for the types, else arithmetic.

    ``integer_input`` is the position of the integers. Arithmetic supports 16-bit integers; old
    opsets have no 4-bit types.
    """
    spelled_out = _quantize_spelled_out if integer_input else _dequantize_spelled_out

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
        """Build ONNX's operator or the arithmetic; None if neither is possible."""
        integers, scale = input_at(inputs, integer_input), input_at(inputs, 1)
        is_supported = integers is None or integers.dtype in OF_ALL_OPSETS
        is_supported = is_supported and scale is not None and scale.dtype == FLOAT
        if is_supported or b.model.opset_imports.get("", 0) >= 21:
            options: dict[str, Any] = dict(attributes)
            return (b.op(op, *inputs, **options),)
        if integers is None or integers.dtype not in SPELLED_OUT or first(inputs).shape is None:
            return None
        return (spelled_out(b, inputs, attributes),)

    return body


def _to_float(b: Builder, value: ir.Value | None) -> ir.Value:
    """Build ``value`` as float32."""
    assert value is not None
    return b.cast(value, FLOAT)


def _broadcastable(b: Builder, value: ir.Value, inputs: Values, attributes: Attributes) -> ir.Value:
    """Build ``value``, one number or one per index of the axis, reshaped to broadcast to x."""
    axis, shape = attributes["axis"], first(inputs).shape
    assert shape is not None
    after = len(shape) - 1 - axis % len(shape) if isinstance(axis, int) and len(shape) else -1
    return b.op("Reshape", value, b.const_i64([-1, *[1] * after] if after >= 0 else []))


def _quantize_spelled_out(b: Builder, inputs: Values, attributes: Attributes) -> ir.Value:
    """Build the quantization to 16-bit integers from arithmetic."""
    x, scale, zero = inputs
    assert zero is not None
    assert zero.dtype is not None
    step, offset = (_broadcastable(b, _to_float(b, v), inputs, attributes) for v in (scale, zero))
    steps = b.op("Add", b.op("Round", b.op("Div", _to_float(b, x), step)), offset)
    bounds = ml_dtypes.iinfo(zero.dtype.numpy())
    ends = (b.const_like(int(end), steps) for end in (bounds.min, bounds.max))
    return b.op("Cast", b.op("Clip", steps, *ends), to=int(zero.dtype))


def _dequantize_spelled_out(b: Builder, inputs: Values, attributes: Attributes) -> ir.Value:
    """Build the dequantization; 16-bit integers and their differences are exact in floats."""
    x, scale, zero = filled(inputs, 3)
    assert scale is not None
    assert scale.dtype is not None
    centred = _to_float(b, x)
    if zero is not None:
        offset = _broadcastable(b, _to_float(b, zero), inputs, attributes)
        centred = b.op("Sub", centred, offset)
    real = b.op("Mul", centred, _broadcastable(b, _to_float(b, scale), inputs, attributes))
    return b.cast(real, scale.dtype)


OPERATORS = (
    operator(
        "QuantizeLinear",
        "QuantizeLinear, to integers of 16 and 4 bits at any opset",
        inputs=("x", "y_scale", "y_zero_point?"),
        outputs=("y",),
        attributes=AXIS,
        infer=_infer_quantize,
        reference=_quantize,
        body=_body("QuantizeLinear", 2),
    ),
    operator(
        "DequantizeLinear",
        "DequantizeLinear, of integers of 16 and 4 bits at any opset",
        inputs=("x", "x_scale", "x_zero_point?"),
        outputs=("y",),
        attributes=AXIS,
        infer=_infer_dequantize,
        reference=_dequantize,
        body=_body("DequantizeLinear", 0),
    ),
)
