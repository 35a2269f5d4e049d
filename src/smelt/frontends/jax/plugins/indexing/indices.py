"""Shared by ``gather`` and ``scatter``: start indices, their bounds, and windows around them.

An index tensor is int64 ``[batch..., columns]``. Column c holds the start of a window of
``sizes[c]`` elements on a dim of ``limits[c]`` elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, InconclusiveDim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.programs.creation import counted

CLIP, DROP, PROMISE = "clip", "drop", "promise"
_MODES = {"CLIP": CLIP, "FILL_OR_DROP": DROP, "PROMISE_IN_BOUNDS": PROMISE}


def mode_of(cx: Lowering, mode: object) -> str:
    """Return the mode for indices out of bounds; raises Unsupported E102 for an unknown mode."""
    name = str(getattr(mode, "name", mode))
    if name not in _MODES:
        raise cx.unsupported(f"its mode is {name}")
    return _MODES[name]


def in_bounds(cx: Lowering, index: ir.Value, limits: Sequence[Dim], sizes: Sequence[Dim]) -> bool:
    """True if ``index`` is a constant and each window provably lies inside its dim."""
    starts_array = cx.known(index)
    if starts_array is None:
        return False
    try:
        pairs = zip(limits, sizes, np.moveaxis(starts_array, -1, 0), strict=True)
        return all(
            bool((starts >= 0).all()) and bool(limit - size >= int(starts.max(initial=0)))
            for limit, size, starts in pairs
        )
    except InconclusiveDim:
        return False


def last_starts(cx: Lowering, limits: Sequence[Dim], sizes: Sequence[Dim]) -> ir.Value:
    """Return the last start in bounds of each column."""
    return cx.shape_value([limit - size for limit, size in zip(limits, sizes, strict=True)])


def clipped(cx: Lowering, index: ir.Value, last: ir.Value) -> ir.Value:
    """Return ``index`` clipped into bounds."""
    return cx.op("Min", cx.op("Max", index, cx.const_i64([0])), last)


def validity(cx: Lowering, index: ir.Value, inside: ir.Value, columns: int) -> ir.Value:
    """Return ``[batch..., 1]``: True where clipping changed no column of the index."""
    valid = cx.op("Equal", index, inside)
    if columns == 1:
        return valid
    columns_valid = cx.cast(valid, ir.DataType.INT32)
    return cx.cast(
        cx.op("ReduceMin", columns_valid, cx.const_i64([-1]), keepdims=1), ir.DataType.BOOL
    )


def windowed(cx: Lowering, index: ir.Value, rank: int, windows: Sequence[Dim | None]) -> ir.Value:
    """Return the index of every window element: ``[batch..., windows..., columns]``.

    ``windows`` holds the window size of each column, None for columns without a window dim.
    """
    shape = [size for size in windows if size is not None]
    if not shape:
        return index
    starts = cx.unsqueeze(index, range(rank - 1, rank - 1 + len(shape)))
    if any(is_symbolic(size) for size in shape):
        return _counted_windows(cx, starts, windows)
    offsets = np.zeros((*shape, len(windows)), np.int64)
    window_dim = 0
    for column, size in enumerate(windows):
        if size is not None:
            along_window_dim = [1] * len(shape)
            along_window_dim[window_dim] = size
            offsets[..., column] = np.arange(size).reshape(along_window_dim)
            window_dim += 1
    return cx.op("Add", starts, cx.constant(offsets))


def _counted_windows(cx: Lowering, starts: ir.Value, windows: Sequence[Dim | None]) -> ir.Value:
    """Return ``starts`` plus the offsets inside each window, for window sizes that may be symbolic.

    One Add per window dim changes only the column of that dim.
    """
    window_rank = sum(size is not None for size in windows)
    window_dim = 0
    for column, size in enumerate(windows):
        if size is None:
            continue
        other_dims = [d for d in range(window_rank + 1) if d != window_dim]
        offsets = cx.unsqueeze(counted(cx, size, np.dtype(np.int64)), other_dims)
        unit_column = np.zeros(len(windows), np.int64)
        unit_column[column] = 1
        starts = cx.op("Add", starts, cx.op("Mul", offsets, cx.constant(unit_column)))
        window_dim += 1
    return starts


def rearranged(
    cx: Lowering, x: ir.Value, labels: Sequence[object], wanted_labels: Sequence[object]
) -> ir.Value:
    """Return ``x``, whose dims have ``labels``, with its dims in the order ``wanted_labels``."""
    return cx.transpose(x, [list(labels).index(label) for label in wanted_labels])
