"""Lower a scatter of one window at a known place, ``x.at[1:-1, 1:-1].add(y)``, to joined slices.

For ScatterND the index tensor would be a constant as large as the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.indexing.dynamic_slicing import FEW_ROWS, LONG_ROW

Box: TypeAlias = Mapping[int, tuple[int, int]]
"""Start and end of a window on each dim that it covers only in part."""


def box_of(
    cx: Lowering,
    starts: ir.Value,
    mapped: Sequence[int],
    partial: Sequence[int],
    windows: Mapping[int, Dim],
) -> Box | None:
    """Return the one window of a scatter at constant ``starts``; None if ScatterND computes it.

    ``starts`` has a column for each dim in ``mapped``. The window covers ``partial`` dims in part;
    ``windows`` holds its sizes (1 if absent). None unless the window is known to lie inside, and
    if ScatterND is as fast.
    """
    first_indices, shape = cx.known(starts), cx.avals_in[0].shape
    if first_indices is None or first_indices.ndim != 1:
        return None
    first_of_dim = dict(zip(mapped, first_indices.tolist(), strict=True))
    box = {
        dim: (first_of_dim.get(dim, 0), first_of_dim.get(dim, 0) + windows.get(dim, 1))
        for dim in sorted(partial)
    }
    if any(is_symbolic(shape[dim]) or is_symbolic(box[dim][1]) for dim in partial):
        return None
    if any(start < 0 or end > shape[dim] for dim, (start, end) in box.items()):
        return None
    rows = prod(end - start for start, end in box.values())
    row = prod(size for dim, size in enumerate(shape) if dim not in box and not is_symbolic(size))
    in_order = list(box) == list(range(len(box)))
    is_fast_as_scatter = in_order and (rows <= FEW_ROWS or row >= LONG_ROW)
    if rows == 0 or rows * row == 1 or is_fast_as_scatter:
        return None
    return box


def cut_out(cx: Lowering, x: ir.Value, box: Box) -> ir.Value:
    """Return the window ``box`` of ``x``."""
    starts, ends = zip(*box.values(), strict=True)
    return cx.slice(x, list(starts), list(ends), list(box))


def put_in(cx: Lowering, x: ir.Value, window: ir.Value, box: Box) -> ir.Value:
    """Return ``x`` with ``window`` in place of ``box``: slices are joined dim by dim."""
    if not box:
        return window
    (dim, (start, end)), *other_dims = box.items()
    size = cx.avals_in[0].shape[dim]

    def piece(begin: int, stop: int) -> ir.Value:
        """Return rows ``begin`` to ``stop`` of ``x`` along ``dim``."""
        return cx.slice(x, [begin], [stop], [dim])

    within = piece(start, end) if other_dims and end - start < size else x
    pieces = [put_in(cx, within, window, dict(other_dims))]
    if start > 0:
        pieces.insert(0, piece(0, start))
    if end < size:
        pieces.append(piece(end, size))
    return pieces[0] if len(pieces) == 1 else cx.op("Concat", *pieces, axis=dim)
