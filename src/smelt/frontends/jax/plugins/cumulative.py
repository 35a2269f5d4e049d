"""Running sums, products and extremes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

NARROW_BITS = 16

COMBINED = {"cumprod": "Mul", "cummax": "Max", "cummin": "Min"}


@lowers("cumsum")
def cumsum(cx: Lowering, x: ir.Value, *, axis: int, reverse: bool) -> ir.Value:
    assert x.dtype is not None
    wide = x
    if x.dtype.is_integer() and x.dtype.bitwidth <= NARROW_BITS:
        wide = cx.cast(x, ir.DataType.INT32)
    dim = cx.constant(np.asarray(int(axis), np.int32))
    return cx.cast(cx.op("CumSum", wide, dim, reverse=int(reverse)), x.dtype)


def _lower(op_type: str) -> Callable[..., ir.Value]:
    def lower(cx: Lowering, x: ir.Value, *, axis: int, reverse: bool) -> ir.Value:
        return scan(cx, op_type, x, int(axis), reverse)

    return lower


for _primitive, _op_type in COMBINED.items():
    lowers(_primitive)(_lower(_op_type))


def scan(cx: Lowering, op_type: str, x: ir.Value, axis: int, reverse: bool) -> ir.Value:
    """Each step combines every element with the one ``distance`` before, and doubles it."""
    size = cx.avals_in[0].shape[axis]
    if not isinstance(size, int):
        raise cx.unsupported("the axis has a symbolic size")
    distance, end = 1, int(np.iinfo(np.int64).max)
    while distance < size:
        if reverse:
            kept = cx.slice(x, [size - distance], [end], [axis])
            parts = (
                cx.slice(x, [0], [size - distance], [axis]),
                cx.slice(x, [distance], [end], [axis]),
            )
            x = cx.op("Concat", cx.op(op_type, *parts), kept, axis=axis)
        else:
            kept = cx.slice(x, [0], [distance], [axis])
            parts = (
                cx.slice(x, [distance], [end], [axis]),
                cx.slice(x, [0], [size - distance], [axis]),
            )
            x = cx.op("Concat", kept, cx.op(op_type, *parts), axis=axis)
        distance *= 2
    return x
