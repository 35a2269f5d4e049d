"""``QuantizeLinear`` and ``DequantizeLinear`` of ONNX Runtime, for types that old opsets lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attribute, Attributes, Computed, Given, Result
from smelt.operators.inputs import first, given, present
from smelt.operators.microsoft.declared import Values, operator
from smelt.operators.microsoft.quantized import dequantized, requantized

AXIS = (Attribute("axis", ir.AttributeType.INT),)
OF_ALL_OPSETS = frozenset({ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT32})
SPELLED_OUT = frozenset({ir.DataType.UINT16, ir.DataType.INT16})
FLOAT = ir.DataType.FLOAT


def _along(array: np.ndarray | None, x: np.ndarray, attributes: Attributes) -> np.ndarray | None:
    """Return one number, or one per index of an axis, reshaped to broadcast against ``x``."""
    axis = attributes["axis"]
    if array is None or array.size == 1 or not isinstance(axis, int):
        return array if array is None else array.reshape(())
    shape = [1] * x.ndim
    shape[axis] = -1
    return array.reshape(shape)


def _infer_quantize(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    zero = given(inputs, 2)
    return (Result(ir.DataType.UINT8 if zero is None else zero.dtype, first(inputs).shape),)


def _infer_dequantize(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    scale = given(inputs, 1)
    return (Result(None if scale is None else scale.dtype, first(inputs).shape),)


def _quantize(inputs: Given, attributes: Attributes) -> Computed:
    x, scale = present(inputs[:2])
    zero = given(inputs, 2)
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    step = _along(scale.astype(np.float32), x, attributes)
    return (requantized(x.astype(np.float32), step, _along(zero, x, attributes), dtype),)


def _dequantize(inputs: Given, attributes: Attributes) -> Computed:
    x, scale = present(inputs[:2])
    zero = given(inputs, 2)
    step = _along(scale.astype(np.float32), x, attributes)
    real = dequantized(x, step, _along(zero, x, attributes))
    with np.errstate(over="ignore"):  # half floats end at 65504
        return (real.astype(scale.dtype),)


def _body(op: str, narrow: int) -> Any:
    """Return a body: ONNX's own operator if the opset has it for the types, else arithmetic.

    ``narrow`` is the position of the integers. Arithmetic covers 16-bit integers; old opsets have
    no 4-bit types.
    """
    spelled_out = _quantize_spelled_out if narrow else _dequantize_spelled_out

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
        """Build ONNX's operator or the arithmetic; None if neither is possible."""
        small, scale = given(inputs, narrow), given(inputs, 1)
        plain = small is None or small.dtype in OF_ALL_OPSETS
        plain = plain and scale is not None and scale.dtype == FLOAT
        if plain or b.model.opset_imports.get("", 0) >= 21:
            said: dict[str, Any] = dict(attributes)
            return (b.op(op, *inputs, **said),)
        if small is None or small.dtype not in SPELLED_OUT or first(inputs).shape is None:
            return None
        return (spelled_out(b, inputs, attributes),)

    return body


def _to_float(b: Builder, value: ir.Value | None) -> ir.Value:
    assert value is not None
    return b.cast(value, FLOAT)


def _meeting(b: Builder, value: ir.Value, inputs: Values, attributes: Attributes) -> ir.Value:
    """Build what ``_along`` computes."""
    axis, shape = attributes["axis"], first(inputs).shape
    assert shape is not None
    after = len(shape) - 1 - axis % len(shape) if isinstance(axis, int) and len(shape) else -1
    return b.op("Reshape", value, b.const_i64([-1, *[1] * after] if after >= 0 else []))


def _quantize_spelled_out(b: Builder, inputs: Values, attributes: Attributes) -> ir.Value:
    """Build the quantization to 16-bit integers from arithmetic."""
    x, scale, zero = inputs
    assert zero is not None
    assert zero.dtype is not None
    step, less = (_meeting(b, _to_float(b, v), inputs, attributes) for v in (scale, zero))
    steps = b.op("Add", b.op("Round", b.op("Div", _to_float(b, x), step)), less)
    bounds = ml_dtypes.iinfo(zero.dtype.numpy())
    ends = (b.const_like(int(end), steps) for end in (bounds.min, bounds.max))
    return b.op("Cast", b.op("Clip", steps, *ends), to=int(zero.dtype))


def _dequantize_spelled_out(b: Builder, inputs: Values, attributes: Attributes) -> ir.Value:
    """Build the dequantization; 16-bit integers and their differences are exact in floats."""
    x, scale, zero = (*inputs, None)[:3]
    assert scale is not None
    assert scale.dtype is not None
    centred = _to_float(b, x)
    if zero is not None:
        less = _meeting(b, _to_float(b, zero), inputs, attributes)
        centred = b.op("Sub", centred, less)
    real = b.op("Mul", centred, _meeting(b, _to_float(b, scale), inputs, attributes))
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
