"""Conversions between element types."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers


@lowers("convert_element_type", broadcasts=True)
def convert_element_type(
    cx: Lowering, x: ir.Value, *, new_dtype: object, weak_type: bool, sharding: object
) -> ir.Value:
    to = ir.DataType.from_numpy(np.dtype(cx.avals_out[0].dtype))
    assert x.dtype is not None
    if x.dtype.is_floating_point() and to.is_integer():
        return _saturate(cx, x, to)
    return cx.cast(x, to)


def _saturate(cx: Lowering, x: ir.Value, to: ir.DataType) -> ir.Value:
    """XLA gives 0 for NaN and the nearest integer for numbers out of range; ONNX says nothing."""
    bounds = np.iinfo(to.numpy())
    # Powers of two, so exact in every type that reaches so far.
    low, high = float(bounds.min), float(bounds.max) + (0 if to.bitwidth <= 16 else 1)
    x = cx.cast(x, ir.DataType.FLOAT) if x.dtype is not None and x.dtype.bitwidth < 32 else x
    if to.bitwidth <= 16:  # Every bound is a number of float32 itself.
        clipped = cx.op("Min", cx.op("Max", x, cx.const_like(low, x)), cx.const_like(high, x))
        known = cx.op("Where", cx.op("IsNaN", x), cx.const_like(0, x), clipped)
        return cx.cast(known, to)
    above = cx.op("GreaterOrEqual", x, cx.const_like(high, x))
    inside = cx.op("And", cx.op("GreaterOrEqual", x, cx.const_like(low, x)), cx.op("Not", above))
    number = cx.cast(cx.op("Where", inside, x, cx.const_like(0, x)), to)
    top = cx.constant(np.asarray(bounds.max, to.numpy()))
    result = cx.op("Where", above, top, number)
    if bounds.min == 0:
        return result
    below = cx.op("Less", x, cx.const_like(low, x))
    return cx.op("Where", below, cx.constant(np.asarray(bounds.min, to.numpy())), result)
