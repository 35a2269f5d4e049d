"""Quantized graphs of products and convolutions.

No scale is a round number: with round ones, many sums lie halfway between two steps, where the
order of float operations decides the rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import TensorProto
from random_graphs.structured_builder import Builder


class Grid(NamedTuple):
    """The scale and zero point of a quantized tensor."""

    scale: str
    zero: str


def grid(b: Builder, kind: type, step: float) -> Grid:
    low = 0 if kind is np.uint8 else -10
    zero = b.pick(0, 128 if kind is np.uint8 else 0, low + 7)
    return Grid(b.const(np.float32(step)), b.const(np.array(zero, kind)))


def quantized_weight(b: Builder, shape: tuple[int, ...], axis: int) -> str:
    """DequantizeLinear of integer weights, per tensor or per channel."""
    kind = b.pick(np.int8, np.int8, np.uint8)
    info = np.iinfo(kind)
    q = b.const(b.numbers.integers(info.min, info.max + 1, shape).astype(kind))
    if b.chance(0.5):
        return b.op(
            "DequantizeLinear",
            q,
            b.const(np.float32(0.010093)),
            b.const(np.array(b.pick(0, 3), kind)),
        )
    count = shape[axis]
    scale = b.const((b.numbers.random(count) * 0.02 + 0.002).astype(np.float32))
    zero = b.const(b.numbers.integers(0, 4, count).astype(kind))
    return b.op("DequantizeLinear", q, scale, zero, axis=axis)


def qdq(b: Builder, x: str) -> str:
    g = grid(b, b.pick(np.int8, np.uint8), b.pick(0.020149, 0.050227))
    again = g if b.chance(0.8) else Grid(b.const(np.float32(0.040351)), g.zero)
    return b.op("DequantizeLinear", b.op("QuantizeLinear", x, *g), *again)


def quantized(b: Builder) -> None:
    """A few quantized convolutions or products in one of four spellings."""
    b.type = TensorProto.FLOAT
    if b.chance(0.5):
        _quantized_images(b)
    else:
        _quantized_rows(b)


def _quantized_images(b: Builder) -> None:
    channels = b.pick(2, 3, 4)
    b.sizes |= {"H": (5, 6), "W": (4, 7)}
    x = b.input("x", ["N", channels, "H", "W"])
    for _ in range(b.pick(2, 3)):
        outer = b.pick(2, 4)
        form = b.pick(_qdq_conv, _qdq_conv, _qlinear_conv, _conv_integer, None)
        if form is None:
            x = qdq(b, b.op("MaxPool", qdq(b, x), kernel_shape=[2, 2], pads=[0, 0, 1, 1]))
        else:
            x, channels = form(b, x, channels, outer), outer
    b.outputs.append(x)


def _qdq_conv(b: Builder, x: str, channels: int, outer: int) -> str:
    w = quantized_weight(b, (outer, channels, 3, 3), 0)
    bias = [b.weight(outer)] if b.chance(0.6) else []
    y = b.op("Conv", qdq(b, x), w, *bias, pads=[1, 0, 1, 1])
    return qdq(b, b.op("Relu", y) if b.chance(0.5) else y)


def _qlinear_conv(b: Builder, x: str, channels: int, outer: int) -> str:
    g, h = (grid(b, np.uint8, step) for step in (0.030203, 0.10079))
    kind = b.pick(np.int8, np.uint8)
    w = b.const(b.numbers.integers(0, 100, (outer, channels, 2, 2)).astype(kind))
    size = b.pick((), (outer,))
    scales = b.const(np.full(size, 0.010093, np.float32))
    zeros = b.const(np.full(size, 0 if kind is np.int8 else 1, kind))
    operands = [b.op("QuantizeLinear", x, *g), *g, w, scales, zeros, *h]
    if b.chance(0.5):
        operands.append(b.const(b.numbers.integers(-500, 500, outer).astype(np.int32)))
    return b.op("DequantizeLinear", b.op("QLinearConv", *operands, pads=[1, 1, 0, 1]), *h)


def _conv_integer(b: Builder, x: str, channels: int, outer: int) -> str:
    q, scale, zero = b.op_n("DynamicQuantizeLinear", 3, x)
    w = b.const(b.numbers.integers(0, 100, (outer, channels, 2, 2)).astype(np.uint8))
    y = b.op("ConvInteger", q, w, zero, b.const(np.array(50, np.uint8)), pads=[0, 1, 1, 0])
    y = b.op("Mul", b.op("Cast", y, to=TensorProto.FLOAT), scale)
    return b.op("Mul", y, b.const(np.float32(0.010093)))


def _quantized_rows(b: Builder) -> None:
    size = b.pick(3, 5, 8)
    x = b.input("x", b.pick(["N", "M", size], ["N", size]))
    for _ in range(b.pick(2, 3)):
        outer = b.pick(3, 5, 8)
        form = b.pick(_qdq_matmul, _qdq_matmul, _qlinear_matmul, _matmul_integer)
        x, size = form(b, x, size, outer), outer
    b.outputs.append(x)


def _qdq_matmul(b: Builder, x: str, size: int, outer: int) -> str:
    y = b.op("MatMul", qdq(b, x), quantized_weight(b, (size, outer), b.pick(1, -1)))
    y = b.op("Add", y, b.weight(outer)) if b.chance(0.5) else y
    return qdq(b, b.op("Relu", y) if b.chance(0.4) else y)


def _qlinear_matmul(b: Builder, x: str, size: int, outer: int) -> str:
    kind = b.pick(np.int8, np.uint8)
    g, h = (grid(b, kind, step) for step in (0.030203, 0.10079))
    w = b.const(b.numbers.integers(0, 100, (size, outer)).astype(kind))
    weights = Grid(b.const(np.float32(0.010093)), b.const(np.array(50, kind)))
    y = b.op("QLinearMatMul", b.op("QuantizeLinear", x, *g), *g, w, *weights, *h)
    return b.op("DequantizeLinear", y, *h)


def _matmul_integer(b: Builder, x: str, size: int, outer: int) -> str:
    q, scale, zero = b.op_n("DynamicQuantizeLinear", 3, x)
    kind = b.pick(np.int8, np.uint8)
    w = b.const(b.numbers.integers(0, 100, (size, outer)).astype(kind))
    y = b.op("MatMulInteger", q, w, zero, b.const(np.array(50, kind)))
    factor = b.op("Mul", scale, b.const(np.float32(0.010093)))
    y = b.op("Mul", b.op("Cast", y, to=TensorProto.FLOAT), factor)
    return b.op("Add", y, b.weight(outer)) if b.chance(0.5) else y
