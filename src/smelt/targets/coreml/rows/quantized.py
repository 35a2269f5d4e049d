"""Rows for QuantizeLinear and DequantizeLinear.

A constant weight stays integer in the package: a constexpr operation dequantizes it on loading.
Activations of 8 bits with constant scales are written as quantize and dequantize from iOS 17 on,
and stay bytes between them; others are computed in floats and 32-bit integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Constant, Element, TensorType
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val

BYTES = {ir.DataType.INT8: Element.INT8, ir.DataType.UINT8: Element.UINT8}
NIBBLES = {ir.DataType.INT4: Element.INT4, ir.DataType.UINT4: Element.UINT4}
LIMITS = {
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
}

WIDE = frozenset({ir.DataType.INT16, ir.DataType.UINT16, ir.DataType.INT32})
"""Integers that float16 does not hold exactly."""
LEAST_SCALE = 2.0**-14
"""The least normal float16; smaller scales would lose digits."""


@writes("QuantizeLinear")
def quantize(c: Call) -> None:
    """Write ``clamp(round(x / scale) + zero)`` in the range of the integer type."""
    target = c.node.outputs[0].dtype
    if target is None or target not in LIMITS:
        raise Refused(f"Core ML has no {target.name.lower() if target else '?'}", "", "E402")
    numbers = c.array(1)
    if target not in BYTES or (numbers is not None and (np.abs(numbers) < LEAST_SCALE).any()):
        c.widen()
    x = c.x()
    if target in BYTES and (parameters := _parameters(c, x, x.element)) is not None:
        kind = target.name.lower()
        c.done(c.write("quantize", BYTES[target], input=x, output_dtype=kind, **parameters))
        return
    scale, zero = _per_channel(c, x, 1), _per_channel(c, x, 2) if c.has(2) else None
    low, high = LIMITS[target]
    if c.attribute("block_size"):
        raise Refused("blocks of activations have scales of their own")
    scaled = c.op("round", c.op("real_div", x, scale))
    if zero is not None:
        scaled = c.op("add", scaled, c.cast(zero, x.element))
    clamped = c.w.op("clip", x.element, x.dims, x=scaled, alpha=float(low), beta=float(high))
    c.done(c.cast(clamped, Element.INT32))


def _parameters(c: Call, x: Val, kind: Element) -> dict[str, Any] | None:
    """Return scale, zero point and axis as constants of quantize and dequantize of ``x``.

    ``kind`` is the element type of the scale. None if these operations do not support them: before
    iOS 17, and for computed ones, blocks, and scales of 0.
    """
    scale, zero = c.array(1), c.array(2) if c.has(2) else None
    if c.w.ios < 17 or scale is None or x.rank == 0 or (zero is None) == c.has(2):
        return None
    axis = int(c.attribute("axis") if c.attribute("axis") is not None else 1)
    with np.errstate(over="ignore"):
        numbers = scale.astype(kind.numpy)
    if not (np.isfinite(numbers) & (numbers != 0)).all():
        return None
    points = {} if zero is None else {"zero_point": zero}
    if scale.size == 1 and (zero is None or zero.size == 1):
        return {key: each.reshape(()) for key, each in ({"scale": numbers} | points).items()}
    if scale.ndim != 1 or x.dims[axis] != scale.size or (zero is not None and zero.ndim != 1):
        return None
    return {"scale": numbers, **points, "axis": np.asarray(axis % x.rank, np.int32)}


def _per_channel(c: Call, x: Val, index: int) -> Val:
    """Return input ``index``, a scale or zero point, so that it broadcasts with ``x``.

    It is a scalar, or a vector along the node's axis. Raises Refused for one per block.
    """
    value = c.x(index)
    axis = int(c.attribute("axis") if c.attribute("axis") is not None else 1)
    if value.rank == 0:
        return value
    if value.dims == (1,):
        return (
            c.squeeze(value, [0]) if value.array is None else c.w.constant(value.array.reshape(()))
        )
    if value.rank != 1:
        raise Refused("blocks of activations have scales of their own")
    after = x.rank - 1 - axis % x.rank
    return c.expand(value, range(1, 1 + after)) if after else value


@writes("DequantizeLinear")
def dequantize(c: Call) -> None:
    """Write a constant weight of 8 or 4 bits as a constexpr, other values as (x - zero) * scale."""
    x_value = c.input(0)
    assert x_value is not None
    weight, scale = c.array(0), c.array(1)
    if x_value.dtype in WIDE or (scale is not None and (np.abs(scale) < LEAST_SCALE).any()):
        c.widen()
    kind = c.out_element()
    if weight is not None and c.array(1) is not None and (not c.has(2) or c.array(2) is not None):
        written = _weight(c, weight, x_value.dtype, kind)
        if written is not None:
            c.done(written)
            return
        if c.w.ios < 18 and (x_value.dtype in NIBBLES or c.attribute("block_size")):
            raise Refused(
                "weights of 4 bits, and scales of blocks, need iOS 18", "add --option ios=18"
            )
    if x_value.dtype not in LIMITS and x_value.dtype != ir.DataType.INT32:
        raise Refused("Core ML has this type in constant weights only", "", "E402")
    packed = c.moved()
    if packed.element in BYTES.values() and (found := _parameters(c, packed, kind)) is not None:
        c.done(c.write("dequantize", kind, input=packed, **found))
        return
    x = c.x(0, Element.INT32)
    if c.has(2):
        x = c.op("sub", x, c.cast(_per_channel(c, x, 2), Element.INT32))
    c.done(c.op("mul", c.cast(x, kind), c.cast(_per_channel(c, x, 1), kind)))


def _weight(c: Call, weight: np.ndarray, dtype: ir.DataType | None, kind: Element) -> Val | None:
    """Return a weight that is dequantized on loading; None if Core ML lacks the format.

    Before iOS 18, that is 8 bits with one scale, or one for each channel. ``kind`` is the type of
    the dequantized weight.
    """
    scale = c.array(1)
    assert scale is not None
    zero = c.array(2) if c.has(2) else None
    axis = int(c.attribute("axis")) % max(weight.ndim, 1)
    numbers = scale.astype(kind.numpy)
    if not np.isfinite(numbers).all() or weight.ndim == 0:
        return None
    label = c.node.outputs[0].name or "weight"
    if c.w.ios >= 18:
        return _blockwise(c, weight, dtype, numbers, zero, axis, label)
    if dtype not in BYTES or scale.ndim > 1 or c.attribute("block_size"):
        return None
    stored = BYTES[dtype]
    count = numbers.size
    points = np.zeros(count, stored.numpy) if zero is None else zero.reshape(-1)
    shape: tuple[int, ...] = () if count == 1 else (count,)
    return c.w.constexpr(
        "constexpr_affine_dequantize",
        kind,
        weight.shape,
        label,
        quantized_data=np.asarray(weight, stored.numpy),
        zero_point=points.astype(stored.numpy).reshape(shape),
        scale=numbers.reshape(shape),
        axis=np.asarray(axis, np.int32),
    )


def _blockwise(
    c: Call,
    weight: np.ndarray,
    dtype: ir.DataType | None,
    scale: np.ndarray,
    zero: np.ndarray | None,
    axis: int,
    label: str,
) -> Val | None:
    """Return a weight with one scale for each block, which Core ML has from iOS 18 on.

    A scale per channel, along ``axis``, is one per block of a channel. None if the type is not of 8
    or 4 bits, or if blocks do not divide the weight.
    """
    stored = (BYTES | NIBBLES).get(dtype) if dtype is not None else None
    if stored is None:
        return None
    if scale.ndim <= 1:
        shape = [1] * weight.ndim
        shape[axis] = scale.size
        scale = scale.reshape(shape)
        zero = None if zero is None else zero.reshape(shape)
    if any(size % blocks for size, blocks in zip(weight.shape, scale.shape, strict=True)):
        return None
    data = weight.astype(np.int8 if stored in (Element.INT8, Element.INT4) else np.uint8)
    more = {}
    if zero is not None:
        more["offset"] = _packed(zero.astype(data.dtype), stored)
    return c.w.constexpr(
        "constexpr_blockwise_shift_scale",
        Element.FLOAT16 if scale.dtype == np.float16 else Element.FLOAT32,
        weight.shape,
        label,
        data=_packed(data, stored),
        scale=scale,
        **more,
    )


def _packed(array: np.ndarray, element: Element) -> Constant:
    """Return an array of 8 or 4 bit integers as a constant, in the weight file if it is large."""
    return Constant(TensorType(element, array.shape), array, array.size >= 10)
