"""Lowers quantized operators to plain arithmetic on integers and floats.

Integers minus their zero points are exact in 32 bits and in float. Results are divided, rounded to
even and clamped in the order of ONNX Runtime, so that they are bitwise equal.
"""

from __future__ import annotations

import math

import ml_dtypes
import onnx_ir as ir

from smelt.program.instruction import AttributeValue, Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.contraction import product_to, shifted
from smelt.program.lower.convolution import window_attributes
from smelt.program.lower.registry import lowers

FLOAT, INT32 = ir.DataType.FLOAT, ir.DataType.INT32
EXACT_FLOAT = 2**24
"""Integers up to this are exact in float32."""

ROUNDED_LIMIT = float(2**20)
"""Numbers are clipped to this before they become integers.

It is beyond every 16-bit number plus a zero point, so that no result changes; and a sum of it and a
zero point fits in 32 bits.
"""


@lowers("DequantizeLinear")
def dequantize(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``(x - zero point) * scale`` in float, cast to the element type of the output."""
    if _emitted_whole(cx, node):
        return
    x, scale = cx.slot(node.inputs[0]), cx.slot(node.inputs[1])
    shape, zero = cx.shape(x), cx.input(node, 2)
    if zero is not None and cx.dtype(x).is_integer():
        widened = _cast(cx, x, INT32)
        point = _along(cx, node, _cast(cx, cx.slot(zero), INT32), shape)
        x = cx.emit_new("Sub", (widened, point), shape)
    factor = _along(cx, node, _cast(cx, scale, FLOAT), shape)
    values = cx.emit_new("Mul", (_cast(cx, x, FLOAT), factor), shape)
    _cast_to(cx, values, node.outputs[0])


@lowers("QuantizeLinear")
def quantize(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``round(x / scale) + zero point``, clamped; for a float output only a division and a
    Cast."""
    if _emitted_whole(cx, node):
        return
    x, scale, zero = cx.slot(node.inputs[0]), cx.slot(node.inputs[1]), cx.input(node, 2)
    shape = cx.shape(x)
    divisor = _along(cx, node, _cast(cx, scale, FLOAT), shape)
    quotient = cx.emit_new("Div", (_cast(cx, x, FLOAT), divisor), shape)
    output = node.outputs[0]
    if output.dtype is None or not output.dtype.is_integer():
        saturate = node.attributes.get_int("saturate", 1)
        cx.emit("Cast", (quotient,), (cx.define(output),), saturate=saturate)
        return
    point = None
    if zero is not None:
        point = _along(cx, node, _cast(cx, cx.slot(zero), INT32), shape)
    _requantize(cx, quotient, point, output)


@lowers("ConvInteger")
def conv_integer(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Conv of integers minus their zero points, in floats wide enough for every sum."""
    if cx.emit_if_supported(node, **_window(cx, node, cx.slot(node.inputs[1]))):
        return
    x, w = cx.slot(node.inputs[0]), cx.slot(node.inputs[1])
    sums = _convolution(cx, node, x, w, cx.input(node, 2), cx.input(node, 3), node.outputs[0])
    _cast_to(cx, sums, node.outputs[0])


@lowers("QLinearConv")
def qlinear_conv(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit integer sums plus a bias, times one factor per channel, rounded as by QuantizeLinear."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
    if cx.emit_if_supported(node, **_window(cx, node, cx.slot(w))):
        return
    output, bias = node.outputs[0], cx.input(node, 8)
    sums = _convolution(cx, node, cx.slot(x), cx.slot(w), x_zero, w_zero, output)
    shape = cx.shape(sums)
    rank = len(shape)
    if bias is not None:
        widened_bias = _channels(cx, _cast(cx, cx.slot(bias), cx.dtype(sums)), rank)
        sums = cx.emit_new("Add", (sums, widened_bias), shape)
    scales = [cx.slot(value) for value in (x_scale, w_scale, y_scale)]
    factor = _channels(cx, _factor(cx, *scales), rank)
    scaled = cx.emit_new("Mul", (_cast(cx, sums, FLOAT), factor), shape)
    _requantize(cx, scaled, _scalar(cx, _cast(cx, cx.slot(y_zero), INT32)), output)


@lowers("QLinearMatMul")
def qlinear_matmul(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit integer sums times one factor, or one per row or column, rounded as by
    QuantizeLinear."""
    if cx.emit_if_supported(node):
        return
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.inputs
    output = node.outputs[0]
    lhs = shifted(cx, cx.slot(a), a_zero, rows=True)
    rhs = shifted(cx, cx.slot(b), b_zero, rows=False)
    if output.shape is None or output.dtype is None:
        raise cx.refuse("the rank of the result is not known")
    sums = cx.new(INT32, output.shape.dims, f"{output.name}/sums")
    product_to(cx, lhs, rhs, sums)
    shape = cx.shape(sums)
    rows = _rows(cx, cx.slot(a_scale), len(shape))
    factor = _factor(cx, rows, cx.slot(b_scale), cx.slot(y_scale))
    scaled = cx.emit_new("Mul", (_cast(cx, sums, FLOAT), factor), shape)
    point = _rows(cx, _cast(cx, cx.slot(y_zero), INT32), len(shape))
    _requantize(cx, scaled, point, output)


def _convolution(
    cx: ProgramBuilder,
    node: ir.Node,
    x: int,
    w: int,
    x_zero: ir.Value | None,
    w_zero: ir.Value | None,
    output: ir.Value,
) -> int:
    """Return the slot of the sums of ``(x - x_zero) * (w - w_zero)`` over each window.

    They are floats, or doubles where a sum of products of bytes could exceed 2**24.
    """
    sizes = _sizes(cx, w)
    if output.shape is None:
        raise cx.refuse("the rank of the result is not known")
    exact = math.prod(sizes[1:]) * 255 * 255 < EXACT_FLOAT
    sum_type = FLOAT if exact else ir.DataType.DOUBLE
    image = _cast(cx, shifted(cx, x, x_zero, rows=False), sum_type)
    weights = shifted(cx, w, None, rows=False)
    if w_zero is not None:
        point = _channels(cx, _cast(cx, cx.slot(w_zero), INT32), len(sizes), axis=0)
        weights = cx.emit_new("Sub", (weights, point), sizes)
    inputs = (image, _cast(cx, weights, sum_type))
    window = _window(cx, node, w)
    return cx.emit_new("Conv", inputs, output.shape.dims, dtype=sum_type, **window)


def _emitted_whole(cx: ProgramBuilder, node: ir.Node) -> bool:
    """Emit a QuantizeLinear or DequantizeLinear as one instruction, and return True.

    False if the target has no kernel for it, or if the node requests a precision or blocks.
    """
    rank = len(cx.shape(cx.slot(node.inputs[0])))
    scales = cx.shape(cx.slot(node.inputs[1]))
    known_scales = [dim for dim in scales if isinstance(dim, int)]
    is_scalar = len(known_scales) == len(scales) and math.prod(known_scales) == 1
    has_options = node.attributes.get_int("precision", 0) or node.attributes.get_int(
        "block_size", 0
    )
    axis = 0 if is_scalar else cx.axis(node.attributes.get_int("axis", 1), rank)
    return not has_options and cx.emit_if_supported(node, axis=axis)


def _window(cx: ProgramBuilder, node: ir.Node, w: int) -> dict[str, AttributeValue]:
    """Return the attributes of a Conv whose weights are in slot ``w``."""
    kernel = cx.ints(node, "kernel_shape") or tuple(_sizes(cx, w)[2:])
    return {**window_attributes(cx, node, kernel), "group": node.attributes.get_int("group", 1)}


def _sizes(cx: ProgramBuilder, w: int) -> list[int]:
    """Return the sizes of the weights, which must be numbers."""
    sizes = [dim for dim in cx.shape(w) if isinstance(dim, int)]
    if len(sizes) < len(cx.shape(w)):
        raise cx.refuse_size("the weights have a symbolic size")
    return sizes


def _requantize(cx: ProgramBuilder, value: int, point: int | None, output: ir.Value) -> None:
    """Emit ``value`` rounded to even plus ``point``, clamped to the element type of ``output``."""
    shape, dtype = cx.shape(value), output.dtype
    assert dtype is not None
    limited = cx.emit_new("Clip", (value,), shape, min=-ROUNDED_LIMIT, max=ROUNDED_LIMIT)
    rounded = _cast(cx, cx.emit_new("Round", (limited,), shape), INT32)
    if point is not None:
        # NaN becomes the least integer, from which a point below 0 would wrap around.
        limit = int(ROUNDED_LIMIT)
        rounded = cx.emit_new("Clip", (rounded,), shape, min=-limit, max=limit)
        rounded = cx.emit_new("Add", (rounded, point), shape)
    low, high = _range(dtype)
    clamped = cx.emit_new("Clip", (rounded,), shape, min=low, max=high)
    _cast_to(cx, clamped, output)


def _range(dtype: ir.DataType) -> tuple[int, int]:
    """Return the least and the greatest integer of ``dtype``."""
    limits = ml_dtypes.iinfo(dtype.numpy())
    return int(limits.min), int(limits.max)


def _cast(cx: ProgramBuilder, slot: int, dtype: ir.DataType) -> int:
    """Return ``slot`` cast to ``dtype``; ``slot`` itself if it has that type."""
    if cx.dtype(slot) == dtype:
        return slot
    return cx.emit_new("Cast", (slot,), cx.shape(slot), dtype=dtype, saturate=1)


def _cast_to(cx: ProgramBuilder, slot: int, output: ir.Value) -> None:
    """Make ``slot``, cast if necessary, the value of ``output``."""
    if cx.dtype(slot) == output.dtype:
        cx.alias(output, slot)
    else:
        cx.emit("Cast", (slot,), (cx.define(output),), saturate=1)


def _factor(cx: ProgramBuilder, x: int, w: int, y: int) -> int:
    """Return ``x * w / y`` in float, in the order of ONNX Runtime."""
    first, second, third = (_scalar(cx, _cast(cx, slot, FLOAT)) for slot in (x, w, y))
    shape = _broadcast_shape(cx.shape(first), cx.shape(second))
    both = cx.emit_new("Mul", (first, second), shape)
    return cx.emit_new("Div", (both, third), _broadcast_shape(shape, cx.shape(third)))


def _broadcast_shape(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the shape to which ``a`` and ``b`` broadcast; they are known to fit."""
    rank = max(len(a), len(b))
    a_shape, b_shape = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(
        b_dim if a_dim == 1 else a_dim for a_dim, b_dim in zip(a_shape, b_shape, strict=True)
    )


def _scalar(cx: ProgramBuilder, slot: int) -> int:
    """Return a vector of one number as a scalar; other slots unchanged."""
    return cx.emit_new("Reshape", (slot,), ()) if cx.shape(slot) == (1,) else slot


def _channels(cx: ProgramBuilder, slot: int, rank: int, axis: int = 1) -> int:
    """Return a vector reshaped to broadcast along ``axis`` of ``rank`` dims; one number stays a
    scalar."""
    slot = _scalar(cx, slot)
    if not cx.shape(slot):
        return slot
    return cx.emit_new("Reshape", (slot,), (*cx.shape(slot), *(1,) * (rank - axis - 1)))


def _rows(cx: ProgramBuilder, slot: int, rank: int) -> int:
    """Return a vector of n per-row numbers reshaped to [n, 1]; one number stays a scalar."""
    slot = _scalar(cx, slot)
    shape = cx.shape(slot)
    return cx.emit_new("Reshape", (slot,), (*shape, 1)) if len(shape) == 1 and rank > 1 else slot


def _along(cx: ProgramBuilder, node: ir.Node, slot: int, shape: tuple[Dim, ...]) -> int:
    """Return the scales or zero points in ``slot`` such that they broadcast to ``shape``.

    One number is a scalar. A vector is reshaped, so that its numbers lie along the node's ``axis``.
    With ``block_size``, each number is repeated for the rows of its block.
    """
    slot = _scalar(cx, slot)
    sizes, rank = cx.shape(slot), len(shape)
    if not sizes:
        return slot
    axis = cx.axis(node.attributes.get_int("axis", 1), rank)
    if len(sizes) == 1:
        return cx.emit_new("Reshape", (slot,), (*sizes, *(1,) * (rank - axis - 1)))
    block, size = node.attributes.get_int("block_size", 0), shape[axis]
    count = sizes[axis] if len(sizes) == rank else None
    if not isinstance(size, int) or not isinstance(count, int):
        raise cx.refuse_size("the blocks have a symbolic size")
    if block < 1 or -(-size // block) != count:
        raise cx.refuse(f"{count} blocks of {block} do not make up the size {size}")
    if block == 1:
        return slot
    before, after = sizes[:axis], sizes[axis + 1 :]
    blocks = cx.emit_new("Reshape", (slot,), (*before, count, 1, *after))
    expanded = cx.emit_new("Expand", (blocks,), (*before, count, block, *after))
    repeated = cx.emit_new("Reshape", (expanded,), (*before, count * block, *after))
    if count * block == size:
        return repeated
    return cx.emit_new(
        "Slice", (repeated,), shape, starts=(0,), ends=(size,), axes=(axis,), steps=(1,)
    )
