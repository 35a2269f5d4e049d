"""``QuantizeLinear`` and ``DequantizeLinear`` of ONNX Runtime, for types that old opsets lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attribute, Attributes, Computed, Given, Result
from smelt.operators.microsoft.declared import Values, first, given, operator

AXIS = (Attribute("axis", ir.AttributeType.INT),)
OF_ALL_OPSETS = frozenset({ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT32})


def _along(array: np.ndarray, x: np.ndarray, attributes: Attributes) -> np.ndarray:
    """One number, or one for each index of an axis, as it meets ``x``."""
    axis = attributes["axis"]
    if array.size == 1 or not isinstance(axis, int):
        return array.reshape(())
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
    x, scale, zero = (*inputs, None)[:3]
    assert x is not None
    assert scale is not None
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    bounds = ml_dtypes.iinfo(dtype)
    steps = np.rint(x.astype(np.float32) / _along(scale, x, attributes).astype(np.float32))
    if zero is not None:
        steps = steps + _along(zero, x, attributes).astype(np.float32)
    return (np.clip(steps, int(bounds.min), int(bounds.max)).astype(dtype),)


def _dequantize(inputs: Given, attributes: Attributes) -> Computed:
    x, scale, zero = (*inputs, None)[:3]
    assert x is not None
    assert scale is not None
    less = np.zeros((), np.int32) if zero is None else _along(zero, x, attributes)
    centred = (x.astype(np.int32) - less.astype(np.int32)).astype(np.float32)
    real = centred * _along(scale, x, attributes).astype(np.float32)
    return (real.astype(scale.dtype),)


def _body(op: str, narrow: int) -> Any:
    """ONNX's own operator, where the opset has it for the types; ``narrow`` is the integers'."""

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
        small, scale = given(inputs, narrow), given(inputs, 1)
        plain = small is None or small.dtype in OF_ALL_OPSETS
        plain = plain and scale is not None and scale.dtype == ir.DataType.FLOAT
        if not plain and b.model.opset_imports.get("", 0) < 21:
            return None
        return (b.op(op, *inputs, **attributes),)  # type: ignore[arg-type]

    return body


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
