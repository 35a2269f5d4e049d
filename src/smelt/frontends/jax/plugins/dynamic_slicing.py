"""Slices that begin at a computed place."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers


@lowers("dynamic_slice")
def dynamic_slice(
    cx: Lowering, x: ir.Value, *starts: ir.Value, slice_sizes: Sequence[Dim]
) -> ir.Value:
    """Starts are clamped so that the slice lies inside."""
    shape = cx.avals_in[0].shape
    axes = [i for i, size in enumerate(shape) if not same_size(size, slice_sizes[i])]
    if not axes:
        return x
    firsts = [clamped(cx, starts[i], shape[i], slice_sizes[i]) for i in axes]
    first = firsts[0] if len(firsts) == 1 else cx.op("Concat", *firsts, axis=0)
    last = cx.op("Add", first, cx.shape_value([slice_sizes[i] for i in axes]))
    return cx.op("Slice", x, first, last, cx.const_i64(axes))


@lowers("dynamic_update_slice")
def dynamic_update_slice(
    cx: Lowering, x: ir.Value, update: ir.Value, *starts: ir.Value
) -> ir.Value:
    """Before, update and after, joined; with several axes, inside the slice of the first."""
    shape, sizes = cx.avals_in[0].shape, cx.avals_in[1].shape
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return x
    axes = [i for i, size in enumerate(shape) if not same_size(size, sizes[i])]
    firsts = {i: clamped(cx, starts[i], shape[i], sizes[i]) for i in axes}

    def updated(part: ir.Value, remaining: list[int]) -> ir.Value:
        if not remaining:
            return update
        axis, rest = remaining[0], remaining[1:]
        dim, first = cx.const_i64([axis]), firsts[axis]
        last = cx.op("Add", first, cx.shape_value([sizes[axis]]))
        before = cx.op("Slice", part, cx.const_i64([0]), first, dim)
        after = cx.op("Slice", part, last, cx.shape_value([shape[axis]]), dim)
        within = cx.op("Slice", part, first, last, dim) if rest else part
        return cx.op("Concat", before, updated(within, rest), after, axis=axis)

    return updated(x, axes)


def clamped(cx: Lowering, start: ir.Value, size: Dim, taken: Dim) -> ir.Value:
    """``start`` as an int64 vector of one, between 0 and ``size - taken``."""
    wide = cx.reshape(cx.cast(start, ir.DataType.INT64), (1,))
    low = cx.op("Max", wide, cx.const_i64([0]))
    return cx.op("Min", low, cx.shape_value([size - taken]))


def same_size(a: Dim, b: Dim) -> bool:
    """True if the two dims are proved equal."""
    return bool(a == b)
