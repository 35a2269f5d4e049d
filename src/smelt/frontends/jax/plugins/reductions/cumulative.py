"""Cumulative sums, products and extremes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.windows.monoid_reductions import scan_rows
from smelt.frontends.jax.plugins.windows.monoids import WIDER, Monoid, logaddexp, of_primitive
from smelt.frontends.jax.plugins.windows.windows import END
from smelt.frontends.jax.registry import lowers

COMBINED = {"cumprod": "mul", "cummax": "max", "cummin": "min"}
"""For each cumulative primitive, the primitive that combines two elements."""

SUMMED = {**WIDER, ir.DataType.UINT32: ir.DataType.INT64, ir.DataType.UINT64: ir.DataType.INT64}
"""Types in which CumSum computes instead; integers wrap to the same bits when cast back."""


@lowers("cumsum")
def cumsum(cx: Lowering, x: ir.Value, *, axis: int, reverse: bool) -> ir.Value:
    """Lower ``cumsum`` to CumSum in a type that it accepts."""
    assert x.dtype is not None
    wide = cx.cast(x, SUMMED.get(x.dtype, x.dtype))
    dim = cx.constant(np.asarray(int(axis), np.int32))
    return cx.cast(cx.op("CumSum", wide, dim, reverse=int(reverse)), x.dtype)


def _lower(name: str) -> Callable[..., ir.Value]:
    """Return the lowering of a running ``name`` (mul, max or min)."""

    def lower(cx: Lowering, x: ir.Value, *, axis: int, reverse: bool) -> ir.Value:
        """Lower the running product, maximum or minimum along ``axis``."""
        return running(
            cx, of_primitive(name, np.dtype(cx.avals_in[0].dtype)), x, int(axis), reverse
        )

    return lower


for _primitive, _name in COMBINED.items():
    lowers(_primitive)(_lower(_name))


@lowers("cumlogsumexp")
def cumlogsumexp(cx: Lowering, x: ir.Value, *, axis: int, reverse: bool) -> ir.Value:
    """Lower ``cumlogsumexp`` as running logaddexp."""
    return running(cx, logaddexp(np.dtype(cx.avals_in[0].dtype)), x, int(axis), reverse)


def running(cx: Lowering, reducer: Monoid, x: ir.Value, axis: int, reverse: bool) -> ir.Value:
    """Return the running combination of ``x`` along ``axis``; by a Scan if its size is symbolic."""
    assert x.dtype is not None
    shape, dtype = tuple(cx.avals_in[0].shape), x.dtype
    widened = Operand(cx.cast(x, reducer.widened(dtype)), shape)
    if isinstance(shape[axis], int):
        return cx.cast(_doubled(cx, reducer, widened, axis, reverse).value, dtype)
    order = [axis, *(dim for dim in range(len(shape)) if dim != axis)]
    rows_shape = tuple(shape[dim] for dim in order)
    rows = [Operand(cx.transpose(widened.value, order), rows_shape)]
    assert reducer.neutral is not None
    neutral = cx.cast(cx.constant(reducer.neutral[0]), reducer.widened(dtype))
    starts = [Operand(cx.expand(neutral, rows_shape[1:]), rows_shape[1:])]
    (result,) = scan_rows(cx, reducer, rows, starts, running=True, reverse=reverse)
    return cx.cast(cx.transpose(result.value, np.argsort(order).tolist()), dtype)


def _doubled(cx: Lowering, reducer: Monoid, x: Operand, axis: int, reverse: bool) -> Operand:
    """Return the running combination by doubling (Hillis and Steele), in log2(size) steps.

    Each step combines every element with the one ``distance`` before it; the distance doubles.
    """
    size, distance = x.shape[axis], 1
    while distance < size:
        shape = (*x.shape[:axis], size - distance, *x.shape[axis + 1 :])
        head = Operand(cx.slice(x.value, [0], [size - distance], [axis]), shape)
        tail = Operand(cx.slice(x.value, [distance], [END], [axis]), shape)
        # The element nearer to the start of the accumulation is the left operand.
        pair = ([tail], [head]) if reverse else ([head], [tail])
        combined = reducer.combine(cx, *pair)[0].value
        if reverse:
            uncombined = cx.slice(x.value, [size - distance], [END], [axis])
            parts = (combined, uncombined)
        else:
            parts = (cx.slice(x.value, [0], [distance], [axis]), combined)
        x = Operand(cx.op("Concat", *parts, axis=axis), x.shape)
        distance *= 2
    return x
