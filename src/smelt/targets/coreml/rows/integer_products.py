"""Rows for matrix products and convolutions of integers with zero points, BitShift and BitwiseNot.

Matrix products are computed in int32. Convolutions are computed in float32, which is exact as long
as sums stay below 2**24.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.arithmetic import RANGES, wrapped
from smelt.targets.coreml.rows.products import product
from smelt.targets.coreml.rows.windows import Window
from smelt.targets.coreml.writer import Refused, Val

EXACT = 1 << 24
"""Float32 holds all integers up to here."""
LARGEST = 255 * 255
"""The largest product of two 8-bit integers after their zero points are subtracted."""


def _shifted(c: Call, index: int, zero: int, element: Element, *, per_row: bool = False) -> Val:
    """Return integer input ``index`` minus the zero point in input ``zero``, as ``element``.

    The zero point is a scalar, or a vector: one for each column, or with ``per_row`` for each row.
    """
    x = c.x(index, Element.INT32)
    if c.has(zero):
        point = c.x(zero, Element.INT32)
        if point.rank == 1 and point.dims == (1,):
            point = c.squeeze(point, [0])
        if point.rank == 1 and per_row and x.rank > 1:
            point = c.expand(point, [1])
        x = c.op("sub", x, point)
    return c.cast(x, element)


@writes("MatMulInteger")
def matmul_integer(c: Call) -> None:
    """Write a product of int32 matrices."""
    x = _shifted(c, 0, 2, Element.INT32, per_row=True)
    y = _shifted(c, 1, 3, Element.INT32)
    c.done(_product(c, x, y))


def _product(c: Call, x: Val, y: Val) -> Val:
    """Return a matrix product; vectors become matrices first."""
    left, right = x.rank == 1, y.rank == 1
    result = product(c, c.expand(x, [0]) if left else x, c.expand(y, [1]) if right else y)
    result = c.squeeze(result, [-1]) if right else result
    return c.squeeze(result, [-1 if right else -2]) if left else result


@writes("ConvInteger")
def conv_integer(c: Call) -> None:
    """Write a convolution of floats, which is exact for sums below 2**24."""
    weight = _weight(c, 1, 3)
    c.done(c.cast(_convolved(c, _shifted(c, 0, 2, Element.FLOAT32), weight), Element.INT32))


def _weight(c: Call, index: int, zero: int) -> np.ndarray:
    """Return the constant weight in input ``index`` minus its zero point, as float32.

    Raises Refused if a sum of products may reach 2**24.
    """
    weight, point = c.array(index), c.array(zero) if c.has(zero) else np.zeros(1, np.int8)
    if weight is None or point is None:
        raise Refused("its weight is computed; Core ML needs a constant")
    if LARGEST * math.prod(weight.shape[1:]) >= EXACT:
        raise Refused("its sums may reach 2**24, beyond which floats are inexact")
    column = point.reshape([-1] + [1] * (weight.ndim - 1)) if point.size > 1 else point.reshape(())
    return np.asarray(weight.astype(np.int32) - column.astype(np.int32), np.float32)


def _convolved(c: Call, x: Val, weight: np.ndarray) -> Val:
    """Return the convolution of float32 ``x`` with ``weight``, with the attributes of the node."""
    window = Window(c, weight.shape[2:])
    kind = window.resolve_auto(x.dims[2:])
    return c.w.op(
        "conv",
        Element.FLOAT32,
        c.out_dims(),
        x=x,
        weight=c.constant(weight, Element.FLOAT32, "weight"),
        strides=window.strides,
        pad_type=kind,
        pad=window.pads(kind),
        dilations=window.dilations,
        groups=int(c.attribute("group")),
    )


def _requantized(c: Call, total: Val, ratio: Val, zero: int) -> Val:
    """Return ``clamp(round(total * ratio) + zero point)`` in the result's 8 or 16 bit integers.

    ``zero`` is the input with the zero point.
    """
    target = c.node.outputs[0].dtype
    if target not in RANGES or target is None:
        raise Refused("its result is no integer of 8 or 16 bits")
    low, high = RANGES[target]
    rounded = c.op("round", c.op("mul", total, ratio))
    shifted = c.op("add", rounded, c.x(zero, Element.FLOAT32))
    clamped = c.w.op(
        "clip", shifted.element, shifted.dims, x=shifted, alpha=float(low), beta=float(high)
    )
    return c.cast(clamped, Element.INT32)


def _scale(c: Call, index: int) -> Val:
    """Return the scale in input ``index`` as float32; a vector of one element becomes a scalar."""
    scale = c.x(index, Element.FLOAT32)
    return c.squeeze(scale, [0]) if scale.dims == (1,) else scale


@writes("QLinearMatMul")
def quantized_matmul(c: Call) -> None:
    """Write ``(a @ b) * a_scale * b_scale / y_scale``, quantized.

    a and b are integers minus their zero points.
    """
    if any(scale is not None and len(scale.shape or ()) > 1 for scale in (c.input(1), c.input(4))):
        raise Refused("its scales have several dims")
    x = _shifted(c, 0, 2, Element.INT32, per_row=True)
    y = _shifted(c, 3, 5, Element.INT32)
    first = _scale(c, 1)
    if first.rank == 1 and x.rank > 1:
        first = c.expand(first, [1])
    ratio = c.op("real_div", c.op("mul", first, _scale(c, 4)), _scale(c, 6))
    c.done(_requantized(c, c.cast(_product(c, x, y), Element.FLOAT32), ratio, 7))


@writes("QLinearConv")
def quantized_conv(c: Call) -> None:
    """Write ``(conv(x, w) + bias) * x_scale * w_scale / y_scale``, quantized.

    x and w are integers minus their zero points.
    """
    weight = _weight(c, 3, 5)
    x = _shifted(c, 0, 2, Element.FLOAT32)
    total = _convolved(c, x, weight)
    axes = range(1, x.rank - 1)
    if c.has(8):
        total = c.op("add", total, c.expand(c.x(8, Element.FLOAT32), axes))
    scale = _scale(c, 4)
    if scale.rank == 1:
        scale = c.expand(scale, axes)
    ratio = c.op("real_div", c.op("mul", scale, _scale(c, 1)), _scale(c, 6))
    c.done(_requantized(c, total, ratio, 7))


@writes("BitShift")
def bit_shift(c: Call) -> None:
    """Write ``x * 2**n`` or ``floor(x / 2**n)`` for a constant n, of uint8 or uint16."""
    amounts = c.array(1)
    if amounts is None or c.dtype() not in (ir.DataType.UINT8, ir.DataType.UINT16):
        raise Refused(
            "Core ML shifts no bits; by constants, integers of 8 or 16 bits become products"
        )
    powers = (1 << np.minimum(amounts.astype(np.int64), 16)).astype(np.int32)
    x = c.x()
    if c.attribute("direction") == "LEFT":
        c.done(wrapped(c, c.op("mul", x, powers)))
    else:
        c.done(c.op("floor_div", x, powers))


@writes("BitwiseNot")
def bitwise_not(c: Call) -> None:
    """Write -1 - x, wrapped to the type."""
    x = c.x()
    c.done(wrapped(c, c.op("sub", c.op("mul", x, -1), 1)))
