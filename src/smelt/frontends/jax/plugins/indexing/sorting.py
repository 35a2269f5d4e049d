"""Lower sorts to TopK, which is stable, with NaN where JAX puts it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.elementwise.arithmetic import is_negative_zero
from smelt.frontends.jax.registry import lowers

SORTABLE = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64)


@lowers("sort")
def sort(
    cx: Lowering, *operands: ir.Value, dimension: int, is_stable: bool, num_keys: int
) -> tuple[ir.Value, ...]:
    """Return the operands in the order of the first ``num_keys`` operands, the keys.

    One stable sort per key, the last key first, orders ties of a key by the keys after it.
    """
    axis, size = int(dimension), cx.avals_in[0].shape[int(dimension)]
    order: ir.Value | None = None
    for key in reversed(operands[:num_keys]):
        order = _ordered(cx, key, order, axis, size, largest=False)
    assert order is not None
    return tuple(cx.op("GatherElements", x, order, axis=axis) for x in operands)


@lowers("top_k")
def top_k(cx: Lowering, x: ir.Value, *, k: Dim, axis: int) -> tuple[ir.Value, ir.Value]:
    """Return the largest elements in JAX's total order: -0 < 0, NaN largest, negated NaN smallest.

    A model cannot see the sign of NaN. It counts as positive unless ``x`` is negated in the graph,
    as it is where the smallest elements are requested.
    """
    producer = x.producer()
    negated = producer is not None and producer.op_type == "Neg"
    order = _in_total_order(cx, x, int(axis), k, negated)
    values = cx.op("GatherElements", x, order, axis=int(axis))
    return values, cx.cast(order, np.dtype(cx.avals_out[1].dtype))


@lowers("approx_top_k")
def approx_top_k(
    cx: Lowering,
    x: ir.Value,
    *,
    k: Dim,
    reduction_dimension: int,
    is_max_k: bool,
    recall_target: float,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> tuple[ir.Value, ir.Value]:
    """Return the exact result, which satisfies any ``recall_target``."""
    shape = cx.avals_in[0].shape
    axis = int(reduction_dimension) % len(shape)
    if not aggregate_to_topk and cx.avals_out[0].shape[axis] != k:
        raise cx.unsupported("it returns more than k candidates, which JAX leaves unspecified")
    order = _ordered(
        cx, x, order=None, axis=axis, size=shape[axis], largest=is_max_k, first_count=k
    )
    values = cx.op("GatherElements", x, order, axis=axis)
    return values, cx.cast(order, np.dtype(cx.avals_out[1].dtype))


def _in_total_order(cx: Lowering, x: ir.Value, axis: int, count: Dim, negated: bool) -> ir.Value:
    """Return the indices of the ``count`` largest elements in JAX's total order, largest first."""
    assert x.dtype is not None
    if not x.dtype.is_floating_point():
        return _by_number(cx, _sortable(cx, x), order=None, axis=axis, count=count, largest=True)
    if x.dtype != ir.DataType.DOUBLE:
        return _by_number(
            cx, _total_key(cx, x, negated), order=None, axis=axis, count=count, largest=True
        )
    # No type is wider than float64, so sort by several keys, the one for ties first.
    size, nan = cx.avals_in[0].shape[axis], cx.op("IsNaN", x)
    zero = cx.cast(cx.op("Not", is_negative_zero(cx, x)), ir.DataType.INT32)
    order = _by_number(cx, zero, order=None, axis=axis, count=size, largest=True)
    numbers = cx.op("Where", nan, cx.const_like(0, x), x)
    order = _by_number(cx, numbers, order, axis, size, largest=True)
    first = cx.cast(cx.op("Not", nan) if negated else nan, ir.DataType.INT32)
    return _by_number(cx, first, order, axis, count, largest=True)


def _total_key(cx: Lowering, x: ir.Value, negated: bool) -> ir.Value:
    """Return float64 keys that TopK sorts in JAX's total order of the floats ``x``.

    -0 becomes -1e-300, which is below 0. Infinities become 1e300 and -1e300, and NaN becomes inf,
    or -inf if ``negated``. Floats of 32 bits have no magnitudes near these.
    """
    wide = cx.cast(x, ir.DataType.DOUBLE)
    number = cx.op("Where", is_negative_zero(cx, wide), cx.const_like(-1e-300, wide), wide)
    number = cx.op("Max", number, cx.const_like(-1e300, wide))
    number = cx.op("Min", number, cx.const_like(1e300, wide))
    nan_key = cx.const_like(-np.inf if negated else np.inf, wide)
    return cx.op("Where", cx.op("IsNaN", wide), nan_key, number)


def _ordered(
    cx: Lowering,
    key: ir.Value,
    order: ir.Value | None,
    axis: int,
    size: Dim,
    *,
    largest: bool,
    first_count: Dim | None = None,
) -> ir.Value:
    """Return ``order`` stably sorted by ``key``, and cut to the first ``first_count``.

    ``order`` holds indices along ``axis``; None means 0, 1, 2, ...
    """
    assert key.dtype is not None
    count = size if first_count is None else first_count
    if not key.dtype.is_floating_point():
        return _by_number(cx, _sortable(cx, key), order, axis, count, largest)
    # Sort the numbers first; a second sort moves NaN to its end.
    key = _sortable(cx, key)
    nan = cx.op("IsNaN", key)
    limit = np.inf if not largest else -np.inf
    numbers = cx.op("Where", nan, cx.const_like(limit, key), key)
    order = _by_number(cx, numbers, order, axis, size, largest)
    return _by_number(cx, cx.cast(nan, ir.DataType.INT32), order, axis, count, largest)


def _sortable(cx: Lowering, key: ir.Value) -> ir.Value:
    """Return ``key`` in a type that TopK sorts in every runtime, in the same order."""
    assert key.dtype is not None
    if key.dtype in SORTABLE:
        return key
    if key.dtype.is_floating_point():
        return cx.cast(key, ir.DataType.FLOAT)
    if key.dtype == ir.DataType.UINT64:
        raise cx.unsupported("sorting uint64 keys needs a wider integer type, and ONNX has none")
    return cx.cast(key, ir.DataType.INT64 if key.dtype == ir.DataType.UINT32 else ir.DataType.INT32)


def _by_number(
    cx: Lowering, key: ir.Value, order: ir.Value | None, axis: int, count: Dim, largest: bool
) -> ir.Value:
    """Return ``order`` stably sorted by ``key``, which has no NaN, and cut to ``count``."""
    if order is not None:
        key = cx.op("GatherElements", key, order, axis=axis)
    k = cx.shape_value([count])
    _, places = cx.ops("TopK", key, k, outputs=2, axis=axis, largest=int(largest), sorted=1)
    return places if order is None else cx.op("GatherElements", order, places, axis=axis)
