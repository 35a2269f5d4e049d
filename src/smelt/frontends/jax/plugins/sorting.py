"""Sorting, by TopK: it is stable, and NaN comes last as in JAX."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

SORTABLE = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64)


@lowers("sort")
def sort(
    cx: Lowering, *operands: ir.Value, dimension: int, is_stable: bool, num_keys: int
) -> tuple[ir.Value, ...]:
    """By the last key first, keeping order; each key decides anew, so the first decides most."""
    axis, size = int(dimension), cx.avals_in[0].shape[int(dimension)]
    order: ir.Value | None = None
    for key in reversed(operands[:num_keys]):
        order = _ordered(cx, key, order, axis, size, largest=False)
    assert order is not None
    return tuple(cx.op("GatherElements", x, order, axis=axis) for x in operands)


@lowers("top_k")
def top_k(cx: Lowering, x: ir.Value, *, k: Dim, axis: int) -> tuple[ir.Value, ir.Value]:
    """NaN counts as the largest, and equals come in their order."""
    size, axis = cx.avals_in[0].shape[int(axis)], int(axis)
    order = _ordered(cx, x, None, axis, size, largest=True, kept=k)
    values = cx.op("GatherElements", x, order, axis=axis)
    return values, cx.cast(order, np.dtype(cx.avals_out[1].dtype))


def _ordered(
    cx: Lowering,
    key: ir.Value,
    order: ir.Value | None,
    axis: int,
    size: Dim,
    *,
    largest: bool,
    kept: Dim | None = None,
) -> ir.Value:
    """``order`` sorted by ``key``, stably; the first ``kept`` of it."""
    assert key.dtype is not None
    count = size if kept is None else kept
    if not key.dtype.is_floating_point():
        return _by_number(cx, _sortable(cx, key), order, axis, count, largest)
    # Numbers sort among themselves, then NaN goes to its end.
    key = _sortable(cx, key)
    nan = cx.op("IsNaN", key)
    limit = np.inf if not largest else -np.inf
    numbers = cx.op("Where", nan, cx.const_like(limit, key), key)
    order = _by_number(cx, numbers, order, axis, size, largest)
    return _by_number(cx, cx.cast(nan, ir.DataType.INT32), order, axis, count, largest)


def _sortable(cx: Lowering, key: ir.Value) -> ir.Value:
    """``key`` in a type that TopK sorts everywhere, with the same order."""
    assert key.dtype is not None
    if key.dtype in SORTABLE:
        return key
    if key.dtype.is_floating_point():
        return cx.cast(key, ir.DataType.FLOAT)
    if key.dtype == ir.DataType.UINT64:
        raise cx.unsupported("uint64 keys have no wider integer to be sorted in")
    return cx.cast(key, ir.DataType.INT64 if key.dtype == ir.DataType.UINT32 else ir.DataType.INT32)


def _by_number(
    cx: Lowering, key: ir.Value, order: ir.Value | None, axis: int, count: Dim, largest: bool
) -> ir.Value:
    if order is not None:
        key = cx.op("GatherElements", key, order, axis=axis)
    k = cx.shape_value([count])
    _, places = cx.ops("TopK", key, k, outputs=2, axis=axis, largest=int(largest), sorted=1)
    return places if order is None else cx.op("GatherElements", order, places, axis=axis)
