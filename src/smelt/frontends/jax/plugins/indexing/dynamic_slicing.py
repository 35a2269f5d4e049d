"""Lower slices whose starts are computed at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.programs.creation import counted
from smelt.frontends.jax.registry import lowers


@lowers("dynamic_slice")
def dynamic_slice(
    cx: Lowering, x: ir.Value, *starts: ir.Value, slice_sizes: Sequence[Dim]
) -> ir.Value:
    """Return the slice of ``slice_sizes``; each start is clamped so that the slice lies in ``x``.

    A slice along one dim of symbolic size is a Gather, because shape inference knows its size. For
    a Slice with computed bounds it does not.
    """
    shape = cx.avals_in[0].shape
    axes = [i for i, size in enumerate(shape) if not same_size(size, slice_sizes[i])]
    if not axes:
        return x
    firsts = [clamped(cx, starts[i], shape[i], slice_sizes[i]) for i in axes]
    if len(axes) == 1 and is_symbolic(shape[axes[0]]) and not is_symbolic(slice_sizes[axes[0]]):
        rows = counted(cx, slice_sizes[axes[0]], np.dtype(np.int64))
        if _scatters_fast(shape, slice_sizes, axes):
            return cx.op("Gather", x, cx.op("Add", rows, firsts[0]), axis=axes[0])
    start = firsts[0] if len(firsts) == 1 else cx.op("Concat", *firsts, axis=0)
    end = cx.op("Add", start, cx.shape_value([slice_sizes[i] for i in axes]))
    return cx.with_known_sizes(cx.op("Slice", x, start, end, cx.const_i64(axes)), slice_sizes)


@lowers("dynamic_update_slice")
def dynamic_update_slice(
    cx: Lowering, x: ir.Value, update: ir.Value, *starts: ir.Value
) -> ir.Value:
    """Return ``x`` with ``update`` written at ``starts``.

    If the rows are long or few, by ScatterND; else by joining slices.
    """
    shape, sizes = cx.avals_in[0].shape, cx.avals_in[1].shape
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return x
    axes = [i for i, size in enumerate(shape) if not same_size(size, sizes[i])]
    if not axes:
        return update
    firsts = {i: clamped(cx, starts[i], shape[i], sizes[i]) for i in axes}
    if all(cx.known(starts[i]) is not None for i in axes) or not _scatters_fast(shape, sizes, axes):
        return cx.with_known_sizes(_by_joined_slices(cx, x, update, firsts), shape)
    return cx.op("ScatterND", x, _row_indices(cx, sizes, firsts), update)


LONG_ROW = 16
FEW_ROWS = 4096
"""Limits from which ONNX Runtime scatters rows at least as fast as it joins slices.

Rows of ``LONG_ROW`` elements or more, or at most ``FEW_ROWS`` rows. Measured: scattering is twice
as fast for a row of a cache, and 10 times slower for many single elements.
"""


def _scatters_fast(shape: Sequence[Dim], sizes: Sequence[Dim], axes: Sequence[int]) -> bool:
    """True if scattering is at least as fast as joining slices: rows are long, or few.

    Symbolic dims count as 1.
    """
    row_length = prod(size for size in shape[axes[-1] + 1 :] if not is_symbolic(size))
    row_count = prod(size for size in sizes[: axes[-1] + 1] if not is_symbolic(size))
    return bool(row_length >= LONG_ROW or row_count <= FEW_ROWS)


def _row_indices(cx: Lowering, sizes: Sequence[Dim], firsts: Mapping[int, ir.Value]) -> ir.Value:
    """Return ScatterND's indices for an update of ``sizes``: ``[*sizes[:n], n]``, n indexed axes.

    They say where each row of the update goes. ``firsts`` holds the index of the update's first
    element on each axis that it covers in part; the last of these axes is the last indexed one.
    """
    lead = list(sizes[: max(firsts) + 1])
    columns = []
    for axis, size in enumerate(lead):
        numbers = counted(cx, size, np.dtype(np.int64))
        if axis in firsts:
            numbers = cx.op("Add", numbers, firsts[axis])
        column = cx.unsqueeze(numbers, range(1, len(lead) - axis + 1))
        columns.append(cx.expand(column, [*lead, 1]) if len(lead) > 1 else column)
    return columns[0] if len(columns) == 1 else cx.op("Concat", *columns, axis=-1)


def _by_joined_slices(
    cx: Lowering, x: ir.Value, update: ir.Value, firsts: Mapping[int, ir.Value]
) -> ir.Value:
    """Return ``x`` with ``update`` in place, by joining the slices before, update and after.

    The slice in the middle of the first axis is joined in the same way along the next axis.
    """
    shape, sizes = cx.avals_in[0].shape, cx.avals_in[1].shape

    def updated(part: ir.Value, remaining: list[int]) -> ir.Value:
        """Return ``part`` with the update written along the ``remaining`` axes."""
        if not remaining:
            return update
        axis, inner_axes = remaining[0], remaining[1:]
        dim, start = cx.const_i64([axis]), firsts[axis]
        end = cx.op("Add", start, cx.shape_value([sizes[axis]]))
        before = cx.op("Slice", part, cx.const_i64([0]), start, dim)
        after = cx.op("Slice", part, end, cx.shape_value([shape[axis]]), dim)
        within = cx.op("Slice", part, start, end, dim) if inner_axes else part
        return cx.op("Concat", before, updated(within, inner_axes), after, axis=axis)

    return updated(x, list(firsts))


def clamped(cx: Lowering, start: ir.Value, size: Dim, slice_size: Dim) -> ir.Value:
    """Return ``start`` as an int64 vector of one, clamped to ``[0, size - slice_size]``."""
    wide = cx.reshape(cx.cast(start, ir.DataType.INT64), (1,))
    low = cx.op("Max", wide, cx.const_i64([0]))
    return cx.op("Min", low, cx.shape_value([size - slice_size]))


def same_size(a: Dim, b: Dim) -> bool:
    """True if the two dims are provably equal."""
    return bool(a == b)
