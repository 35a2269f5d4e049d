"""Lower conversions between element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

OVERFLOWING = {
    ir.DataType.FLOAT8E4M3FN: ("Greater", 464, np.nan),
    ir.DataType.FLOAT8E5M2: ("GreaterOrEqual", 61440, np.inf),
    ir.DataType.FLOAT8E4M3FNUZ: ("GreaterOrEqual", 248, np.nan),
    ir.DataType.FLOAT8E5M2FNUZ: ("GreaterOrEqual", 61440, np.nan),
}
"""Float8 types: the comparison for magnitudes out of range, its limit, and a factor.

A magnitude out of range times the factor is JAX's result (NaN or inf).
"""


@lowers("convert_element_type", broadcasts=True)
def convert_element_type(
    cx: Lowering, x: ir.Value, *, new_dtype: object, weak_type: bool, sharding: object
) -> ir.Value:
    """Cast with JAX's results for out-of-range floats; refuses casts to float8_e8m0fnu."""
    to = ir.DataType.from_numpy(np.dtype(cx.avals_out[0].dtype))
    assert x.dtype is not None
    if x.dtype.is_floating_point() and to.is_integer():
        return _cast_saturating(cx, x, to)
    if to == ir.DataType.FLOAT8E8M0 and x.dtype != to:
        raise cx.unsupported(
            "JAX rounds to the nearest power of two and gives NaN for 0, and ONNX does neither",
            "give the scales as an input or a weight of that type",
        )
    if to in OVERFLOWING and x.dtype != to:
        return _overflowing(cx, x, to)
    return cx.cast(x, to)


def _overflowing(cx: Lowering, x: ir.Value, to: ir.DataType) -> ir.Value:
    """Return ``x`` cast to a float8 type, with NaN or inf beyond the range as in JAX.

    ONNX saturates there, and with saturate=0 runtimes differ at the end of the range.
    """
    test, limit, factor = OVERFLOWING[to]
    assert x.dtype is not None
    x = x if x.dtype == ir.DataType.DOUBLE else cx.cast(x, ir.DataType.FLOAT)
    beyond = cx.op(test, cx.op("Abs", x), cx.const_like(limit, x))
    x = cx.op("Where", beyond, cx.op("Mul", x, cx.const_like(factor, x)), x)
    return cx.op("Cast", x, to=int(to), saturate=0)


def _cast_saturating(cx: Lowering, x: ir.Value, to: ir.DataType) -> ir.Value:
    """Return floats cast to integers as in XLA: NaN gives 0, other numbers saturate.

    ONNX leaves both cases undefined.
    """
    bounds = ml_dtypes.iinfo(to.numpy())
    # Both limits are powers of two, so exact in every float type that holds them.
    low, high = float(bounds.min), float(bounds.max) + (0 if to.bitwidth <= 16 else 1)
    x = cx.cast(x, ir.DataType.FLOAT) if x.dtype is not None and x.dtype.bitwidth < 32 else x
    if to.bitwidth <= 16:  # float32 holds both bounds exactly.
        clipped = cx.op("Min", cx.op("Max", x, cx.const_like(low, x)), cx.const_like(high, x))
        without_nan = cx.op("Where", cx.op("IsNaN", x), cx.const_like(0, x), clipped)
        # Runtimes round in casts to types below a byte, and truncate in casts to bytes.
        byte = ir.DataType.INT8 if bounds.min else ir.DataType.UINT8
        return cx.cast(cx.cast(without_nan, byte) if to.bitwidth < 8 else without_nan, to)
    above = cx.op("GreaterOrEqual", x, cx.const_like(high, x))
    inside = cx.op("And", cx.op("GreaterOrEqual", x, cx.const_like(low, x)), cx.op("Not", above))
    number = cx.cast(cx.op("Where", inside, x, cx.const_like(0, x)), to)
    top = cx.constant(np.asarray(bounds.max, to.numpy()))
    result = cx.op("Where", above, top, number)
    if bounds.min == 0:
        return result
    below = cx.op("Less", x, cx.const_like(low, x))
    return cx.op("Where", below, cx.constant(np.asarray(bounds.min, to.numpy())), result)
