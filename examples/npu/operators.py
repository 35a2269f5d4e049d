"""The operators of the NPU: declared once, with shapes, a NumPy reference and a body of ONNX.

``ConvRelu`` and ``MatMulRelu`` compute ``y = q(relu(sum(dq(x) * dq(w)) + b))`` on int8, with int32
sums: ``acc * (x_scale * w_scale / y_scale)`` is rounded half to even, as QuantizeLinear does. The
body says the same in floats, so a fallback runs what the units do not take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.native.operators import CONV
from smelt.native.operators import infer as infer_conv
from smelt.operators.declare import (
    Arguments,
    Attribute,
    Attributes,
    Computed,
    Operator,
    Result,
    int_of,
    ints_of,
)

DOMAIN = "example.npu"
INT, INTS = ir.AttributeType.INT, ir.AttributeType.INTS
FLOAT, FLOATS = ir.AttributeType.FLOAT, ir.AttributeType.FLOATS
Operand = TypeVar("Operand", np.ndarray, ir.Value)
Values = Sequence["ir.Value | None"]

QUANTIZED = (
    Attribute("x_scale", FLOAT, required=True),
    Attribute("x_zero", INT, 0),
    Attribute("w_scales", FLOATS, required=True),
    Attribute("y_scale", FLOAT, required=True),
    Attribute("y_zero", INT, 0),
    Attribute("relu", INT, 0),
)
WINDOW = (*(Attribute(name, INTS, required=True) for name in CONV), Attribute("group", INT, 1))


def requantized(sums: np.ndarray, attributes: Attributes, axis: int) -> np.ndarray:
    """int32 ``sums`` as int8; channels, which may have scales of their own, are along ``axis``."""
    scales = np.asarray(attributes["w_scales"], np.float32)
    shape = [1] * sums.ndim
    shape[axis] = scales.size
    factor = np.float32(attributes["x_scale"]) * scales / np.float32(attributes["y_scale"])
    real = sums.astype(np.float32) * factor.reshape(shape)
    if attributes["relu"]:
        real = np.maximum(real, 0)
    return np.clip(np.rint(real) + int_of(attributes, "y_zero"), -128, 127).astype(np.int8)


def convolved(inputs: Arguments, attributes: Attributes) -> Computed:
    """One integer product a position of the window; padding is the zero point."""
    x, w, bias = inputs
    assert x is not None and w is not None and bias is not None  # noqa: PT018
    (kh, kw), (sh, sw) = ints_of(attributes, "kernel_shape"), ints_of(attributes, "strides")
    top, left, bottom, right = ints_of(attributes, "pads")
    wide = x.astype(np.int32) - np.int32(attributes["x_zero"])
    wide = np.pad(wide, ((0, 0), (0, 0), (top, bottom), (left, right)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (kh, kw), (2, 3))[:, :, ::sh, ::sw]
    sums = np.einsum("nchwij,mcij->nmhw", views, w.astype(np.int32), optimize=True)
    return (requantized(sums + bias.reshape(-1, 1, 1), attributes, 1),)


def multiplied(inputs: Arguments, attributes: Attributes) -> Computed:
    """Rows of x by columns of w."""
    x, w, bias = inputs
    assert x is not None and w is not None and bias is not None  # noqa: PT018
    wide = x.astype(np.int32) - np.int32(attributes["x_zero"])
    return (requantized(wide @ w.astype(np.int32) + bias, attributes, 1),)


def dequantize(b: Builder, x: ir.Value, scale: np.ndarray, zero: int) -> ir.Value:
    """Floats of int8 or int32, in operators that every target has."""
    real = b.op("Cast", x, to=int(ir.DataType.FLOAT))
    if zero:
        real = b.op("Sub", real, b.constant(np.float32(zero)))
    return b.op("Mul", real, b.constant(scale))


def quantize(b: Builder, x: ir.Value, scale: np.ndarray, zero: int) -> ir.Value:
    """The int8 of floats, as QuantizeLinear rounds and saturates."""
    real = b.op("Round", b.op("Div", x, b.constant(scale)))
    if zero:
        real = b.op("Add", real, b.constant(np.float32(zero)))
    real = b.op("Clip", real, b.constant(np.float32(-128)), b.constant(np.float32(127)))
    return b.op("Cast", real, to=int(ir.DataType.INT8))


def _body(conv: bool, b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    x, w, bias = inputs
    assert x is not None and w is not None and bias is not None  # noqa: PT018
    assert bias.shape is not None
    scales = np.asarray(attributes["w_scales"], np.float32)
    x_scale = np.float32(attributes["x_scale"])
    real = dequantize(b, x, np.asarray(x_scale), int_of(attributes, "x_zero"))
    weights = dequantize(b, w, scales.reshape(-1, 1, 1, 1) if conv else scales, 0)
    offset = dequantize(b, bias, x_scale * np.broadcast_to(scales, bias.shape.numpy()), 0)
    if conv:
        window = {name: attributes[name] for name in CONV}
        y = b.op("Conv", real, weights, offset, group=attributes["group"], **window)
    else:
        y = b.op("Add", b.op("MatMul", real, weights), offset)
    y = b.op("Relu", y) if attributes["relu"] else y
    y_scale = np.asarray(attributes["y_scale"], np.float32)
    return (quantize(b, y, y_scale, int_of(attributes, "y_zero")),)


def _infer_product(inputs: Values, attributes: Attributes) -> tuple[Result, ...]:
    x, w = inputs[0], inputs[1]
    if x is None or w is None:
        raise ValueError("a product takes rows and weights")
    if x.shape is None or w.shape is None:
        return (Result(x.dtype, None),)
    return (Result(x.dtype, ir.Shape([x.shape[0], w.shape[1]])),)


def _single(inputs: Sequence[Operand | None]) -> Operand:
    """The one operand of an operator that takes one."""
    (x,) = inputs
    if x is None:
        raise ValueError("the operator takes one operand")
    return x


def _quantized(inputs: Arguments, attributes: Attributes) -> Computed:
    real = np.rint(_single(inputs) / np.float32(attributes["scale"]))
    return (np.clip(real + int_of(attributes, "zero"), -128, 127).astype(np.int8),)


def _dequantized(inputs: Arguments, attributes: Attributes) -> Computed:
    moved = _single(inputs).astype(np.int32) - int_of(attributes, "zero")
    return ((moved * np.float32(attributes["scale"])).astype(np.float32),)


def _scale(attributes: Attributes) -> np.ndarray:
    return np.asarray(attributes["scale"], np.float32)


SCALE = (Attribute("scale", FLOAT, required=True), Attribute("zero", INT, 0))

CONV_RELU = Operator(
    domain=DOMAIN,
    name="ConvRelu",
    summary="int8 convolution, Relu and requantization in one command",
    inputs=("x", "w", "bias"),
    outputs=("y",),
    attributes=(*WINDOW, *QUANTIZED),
    infer=infer_conv,
    reference=convolved,
    body=lambda b, inputs, attributes: _body(True, b, inputs, attributes),
    any_rank=False,
)
MATMUL_RELU = Operator(
    domain=DOMAIN,
    name="MatMulRelu",
    summary="int8 product, Relu and requantization in one command",
    inputs=("x", "w", "bias"),
    outputs=("y",),
    attributes=QUANTIZED,
    infer=_infer_product,
    reference=multiplied,
    body=lambda b, inputs, attributes: _body(False, b, inputs, attributes),
)
QUANTIZE = Operator(
    domain=DOMAIN,
    name="Quantize",
    summary="int8 of floats; the NPU does not run it, a fallback runs its body",
    inputs=("x",),
    outputs=("y",),
    attributes=SCALE,
    infer=lambda inputs, _: (Result(ir.DataType.INT8, _single(inputs).shape),),
    reference=_quantized,
    body=lambda b, inputs, a: (quantize(b, _single(inputs), _scale(a), int_of(a, "zero")),),
)
DEQUANTIZE = Operator(
    domain=DOMAIN,
    name="Dequantize",
    summary="floats of int8; the NPU does not run it, a fallback runs its body",
    inputs=("x",),
    outputs=("y",),
    attributes=SCALE,
    infer=lambda inputs, _: (Result(ir.DataType.FLOAT, _single(inputs).shape),),
    reference=_dequantized,
    body=lambda b, inputs, a: (dequantize(b, _single(inputs), _scale(a), int_of(a, "zero")),),
)

UNITS = (CONV_RELU, MATMUL_RELU)
"""What the machine runs."""

OPERATORS = (*UNITS, QUANTIZE, DEQUANTIZE)
