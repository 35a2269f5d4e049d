"""Lower reductions over dims, argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.reductions.generic_reduce import folded_by
from smelt.frontends.jax.registry import lowers

BOOL = ir.DataType.BOOL

WIDER = dict.fromkeys((ir.DataType.INT16, ir.DataType.UINT16), ir.DataType.INT32)
"""Wider types for integers that ReduceMax and ReduceMin do not accept; results are cast back."""

LONG = (ir.DataType.INT64, ir.DataType.UINT64)

REDUCERS = {
    "reduce_sum": "ReduceSum",
    "reduce_prod": "ReduceProd",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}

FOLDED = {"ReduceProd": "mul", "ReduceMax": "max", "ReduceMin": "min"}
"""The primitive with which ``folded_by`` computes a reduction that runtimes lack for a type."""


def _lower(op_type: str) -> Callable[..., ir.Value]:
    """Return the lowering of a reduction to ``op_type``."""

    def lower(
        cx: Lowering, x: ir.Value, *, axes: Sequence[int], out_sharding: object = None
    ) -> ir.Value:
        """Lower the reduction over ``axes``."""
        return reduce(cx, op_type, x, axes)

    return lower


for _primitive, _op_type in REDUCERS.items():
    lowers(_primitive)(_lower(_op_type))


def reduce(cx: Lowering, op_type: str, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Return ``x`` reduced over ``axes``, or ``x`` itself if there are none."""
    if not len(axes):
        return x
    shape = cx.avals_in[0].shape
    if any(isinstance(shape[int(axis)], int) and shape[int(axis)] == 0 for axis in axes):
        return cx.expand(_identity(cx, op_type, x), cx.avals_out[0].shape)
    assert x.dtype is not None
    dims = [int(axis) for axis in axes]
    if x.dtype.is_integer():
        return _reduce_integers(cx, op_type, x, x.dtype, dims)
    if x.dtype.is_floating_point() and op_type in ("ReduceMax", "ReduceMin"):
        return _extreme_or_nan(cx, op_type, x, cx.const_i64(dims))
    return cx.op(op_type, x, cx.const_i64(dims), keepdims=0)


def _extreme_or_nan(cx: Lowering, op_type: str, x: ir.Value, dims: ir.Value) -> ir.Value:
    """Return the extreme, NaN if any element is NaN as in JAX.

    Runtimes skip NaN depending on its place. A sum of squares is NaN only if an element is, because
    it never subtracts infinities.
    """
    squares_sum = cx.op("ReduceSumSquare", x, dims, keepdims=0)
    extreme = cx.op(op_type, x, dims, keepdims=0)
    return cx.op("Where", cx.op("IsNaN", squares_sum), squares_sum, extreme)


def _reduce_integers(
    cx: Lowering, op_type: str, x: ir.Value, dtype: ir.DataType, axes: list[int]
) -> ir.Value:
    """Return the exact reduction of integers, with JAX's wraparound.

    ONNX Runtime adds integers as doubles and saturates, so 64-bit sums are split into halves.
    """
    dims = cx.const_i64(axes)
    if op_type == "ReduceSum":
        if dtype in LONG:
            return cx.cast(_exact_sum(cx, cx.cast(x, ir.DataType.INT64), dims), dtype)
        wide = cx.cast(x, ir.DataType.INT64)
        return cx.cast(cx.op(op_type, wide, dims, keepdims=0), dtype)
    if op_type == "ReduceProd" or dtype == ir.DataType.UINT64:
        return folded_by(cx, FOLDED[op_type], x, axes)
    wide = cx.cast(x, WIDER.get(dtype, dtype))
    return cx.cast(cx.op(op_type, wide, dims, keepdims=0), dtype)


def _exact_sum(cx: Lowering, x: ir.Value, dims: ir.Value) -> ir.Value:
    """Return the sum of int64 elements modulo 2**64.

    The low and the high 32 bits are summed apart; ONNX Runtime's double sums of those are exact.
    """
    base = cx.const_i64(2**32)
    low = cx.op("BitwiseAnd", x, cx.const_i64(2**32 - 1))
    high = cx.op("Div", cx.op("Sub", x, low), base)
    lows, highs = (cx.op("ReduceSum", part, dims, keepdims=0) for part in (low, high))
    return cx.op("Add", cx.op("Mul", highs, base), lows)


def _identity(cx: Lowering, op_type: str, like: ir.Value) -> ir.Value:
    """Return the result of an empty reduction."""
    if op_type in ("ReduceSum", "ReduceProd"):
        return cx.const_like(int(op_type == "ReduceProd"), like)
    assert like.dtype is not None
    low = op_type == "ReduceMax"
    if like.dtype.is_floating_point():
        return cx.const_like(-np.inf if low else np.inf, like)
    bounds = np.iinfo(like.dtype.numpy())
    return cx.const_like(bounds.min if low else bounds.max, like)


@lowers("reduce_xor")
def reduce_xor(
    cx: Lowering, x: ir.Value, *, axes: Sequence[int], out_sharding: object = None
) -> ir.Value:
    """Return ``x`` folded by xor over ``axes``."""
    return folded_by(cx, "xor", x, axes) if len(axes) else x


@lowers("reduce_and", "reduce_or")
def reduce_logical(
    cx: Lowering, x: ir.Value, *, axes: Sequence[int], out_sharding: object = None
) -> ir.Value:
    """Reduce booleans by ReduceMin or ReduceMax as int32, integers by folding bitwise."""
    if x.dtype != BOOL:
        name = str(cx.equation.primitive.name).removeprefix("reduce_")
        return folded_by(cx, name, x, axes) if len(axes) else x
    op_type = "ReduceMin" if cx.equation.primitive.name == "reduce_and" else "ReduceMax"
    if not len(axes):
        return x
    shape = cx.avals_in[0].shape
    if any(isinstance(shape[int(axis)], int) and shape[int(axis)] == 0 for axis in axes):
        empty = cx.constant(np.asarray(op_type == "ReduceMin"))
        return cx.expand(empty, cx.avals_out[0].shape)
    numbers = cx.cast(x, ir.DataType.INT32)
    reduced = cx.op(op_type, numbers, cx.const_i64([int(axis) for axis in axes]), keepdims=0)
    return cx.cast(reduced, BOOL)


ORDERED = {
    BOOL: ir.DataType.INT32,
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
}
"""Types to compare in, because few runtimes compare the narrow type."""


@lowers("argmax", "argmin")
def arg_reduce(cx: Lowering, x: ir.Value, *, axes: Sequence[int], index_dtype: object) -> ir.Value:
    """Return the index of the first extreme, or of the first NaN; ONNX guarantees neither."""
    (axis,) = (int(axis) for axis in axes)
    op_type = "ArgMax" if cx.equation.primitive.name == "argmax" else "ArgMin"
    assert x.dtype is not None
    x = cx.cast(x, ORDERED.get(x.dtype, x.dtype))
    index = cx.op(op_type, x, axis=axis, keepdims=0)
    if x.dtype is not None and x.dtype.is_floating_point():
        nan = cx.cast(cx.op("IsNaN", x), ir.DataType.INT32)
        first_nan = cx.op("ArgMax", nan, axis=axis, keepdims=0)
        has_nan = cx.op("ReduceMax", nan, cx.const_i64([axis]), keepdims=0)
        index = cx.op("Where", cx.cast(has_nan, BOOL), first_nan, index)
    return cx.cast(index, np.dtype(str(index_dtype)))
