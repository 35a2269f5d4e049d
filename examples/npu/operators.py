"""The operators of the NPU: declared once, with shapes, a NumPy reference and a body of ONNX.

``ConvRelu`` and ``MatMulRelu`` compute ``y = q(relu(sum(dq(x) * dq(w)) + b))`` on int8, with int32
sums: ``acc * (x_scale * w_scale / y_scale)`` is rounded half to even, as QuantizeLinear does. The
body says the same in floats, so a fallback runs what the units do not take.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.native.operators import CONV
from smelt.native.operators import infer as infer_conv
from smelt.operators.declare import Attribute, Attributes, Operator, Result

DOMAIN = "example.npu"
T = ir.AttributeType
Values = Sequence["ir.Value | None"]
Arrays = Sequence["np.ndarray | None"]

QUANTIZED = (
    Attribute("x_scale", T.FLOAT, required=True),
    Attribute("x_zero", T.INT, 0),
    Attribute("w_scales", T.FLOATS, required=True),
    Attribute("y_scale", T.FLOAT, required=True),
    Attribute("y_zero", T.INT, 0),
    Attribute("relu", T.INT, 0),
)
WINDOW = (*(Attribute(name, T.INTS, required=True) for name in CONV), Attribute("group", T.INT, 1))


def requantized(sums: np.ndarray, attributes: Attributes, axis: int) -> np.ndarray:
    """int32 ``sums`` as int8; channels, which may have scales of their own, are along ``axis``."""
    scales = np.asarray(attributes["w_scales"], np.float32)
    shape = [1] * sums.ndim
    shape[axis] = scales.size
    factor = np.float32(attributes["x_scale"]) * scales / np.float32(attributes["y_scale"])
    real = sums.astype(np.float32) * factor.reshape(shape)
    if attributes["relu"]:
        real = np.maximum(real, 0)
    return np.clip(np.rint(real) + attributes["y_zero"], -128, 127).astype(np.int8)


def convolved(inputs: Arrays, attributes: Attributes) -> tuple[np.ndarray, ...]:
    """One integer product a position of the window; padding is the zero point."""
    x, w, bias = inputs
    assert x is not None and w is not None and bias is not None  # noqa: PT018
    (kh, kw), (sh, sw) = attributes["kernel_shape"], attributes["strides"]  # type: ignore[misc]
    top, left, bottom, right = attributes["pads"]  # type: ignore[misc]
    wide = x.astype(np.int32) - np.int32(attributes["x_zero"])
    wide = np.pad(wide, ((0, 0), (0, 0), (top, bottom), (left, right)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (kh, kw), (2, 3))[:, :, ::sh, ::sw]
    sums = np.einsum("nchwij,mcij->nmhw", views, w.astype(np.int32), optimize=True)
    return (requantized(sums + bias.reshape(-1, 1, 1), attributes, 1),)


def multiplied(inputs: Arrays, attributes: Attributes) -> tuple[np.ndarray, ...]:
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
    scales = np.asarray(attributes["w_scales"], np.float32)
    x_scale = np.float32(attributes["x_scale"])
    real = dequantize(b, x, np.asarray(x_scale), int(attributes["x_zero"]))  # type: ignore[arg-type]
    weights = dequantize(b, w, scales.reshape(-1, 1, 1, 1) if conv else scales, 0)
    offset = dequantize(b, bias, x_scale * np.broadcast_to(scales, bias.shape.numpy()), 0)  # type: ignore[union-attr]
    if conv:
        window = {name: attributes[name] for name in CONV}
        y = b.op("Conv", real, weights, offset, group=attributes["group"], **window)
    else:
        y = b.op("Add", b.op("MatMul", real, weights), offset)
    y = b.op("Relu", y) if attributes["relu"] else y
    y_scale = np.asarray(attributes["y_scale"], np.float32)
    return (quantize(b, y, y_scale, int(attributes["y_zero"])),)  # type: ignore[arg-type]


def _infer_product(inputs: Values, attributes: Attributes) -> tuple[Result, ...]:
    x, w = inputs[0], inputs[1]
    if x is None or w is None:
        raise ValueError("a product takes rows and weights")
    if x.shape is None or w.shape is None:
        return (Result(x.dtype, None),)
    return (Result(x.dtype, ir.Shape([x.shape[0], w.shape[1]])),)


def _infer_scaled(dtype: ir.DataType) -> object:
    return lambda inputs, attributes: (Result(dtype, inputs[0].shape),)


SCALE = (Attribute("scale", T.FLOAT, required=True), Attribute("zero", T.INT, 0))

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
    infer=_infer_scaled(ir.DataType.INT8),  # type: ignore[arg-type]
    reference=lambda inputs, a: (
        np.clip(np.rint(inputs[0] / np.float32(a["scale"])) + a["zero"], -128, 127).astype(np.int8),
    ),
    body=lambda b, inputs, a: (
        quantize(b, inputs[0], np.asarray(a["scale"], np.float32), a["zero"]),  # type: ignore[arg-type]
    ),
)
DEQUANTIZE = Operator(
    domain=DOMAIN,
    name="Dequantize",
    summary="floats of int8; the NPU does not run it, a fallback runs its body",
    inputs=("x",),
    outputs=("y",),
    attributes=SCALE,
    infer=_infer_scaled(ir.DataType.FLOAT),  # type: ignore[arg-type]
    reference=lambda inputs, a: (
        ((inputs[0].astype(np.int32) - a["zero"]) * np.float32(a["scale"])).astype(np.float32),  # type: ignore[union-attr]
    ),
    body=lambda b, inputs, a: (
        dequantize(b, inputs[0], np.asarray(a["scale"], np.float32), a["zero"]),  # type: ignore[arg-type]
    ),
)

OPERATORS = (CONV_RELU, MATMUL_RELU, QUANTIZE, DEQUANTIZE)
