"""Lower padding: at the edges, negative, and between elements."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic, max_dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

SHORT = (ir.DataType.INT16, ir.DataType.UINT16)

Config = Sequence[tuple[Dim, Dim, int]]
"""For each dim, how many elements to add before, after and between the elements."""


@lowers("pad")
def pad(cx: Lowering, x: ir.Value, value: ir.Value, *, padding_config: Config) -> ir.Value:
    """Lower ``pad``, also with negative and interior padding."""
    return padded(cx, x, value, cx.avals_in[0].shape, padding_config)


def padded(
    cx: Lowering, x: ir.Value, value: ir.Value, shape: Sequence[Dim], config: Config
) -> ir.Value:
    """Return ``x``, which has ``shape``, padded with ``value`` as ``config`` says.

    Elements between others are inserted first. Then the edges grow, or are cut where the number is
    negative. A symbolic number may be negative at some sizes only, so it gets both a Pad and a
    Slice.
    """
    sizes = list(shape)
    config = [(as_int(low), as_int(high), int(between)) for low, high, between in config]
    for axis, (_, _, between) in enumerate(config):
        if between and not (isinstance(sizes[axis], int) and sizes[axis] <= 1):
            x, sizes[axis] = _dilated(cx, x, value, sizes, axis, int(between))
    lows = [max_dim(low, 0) for low, _, _ in config]
    highs = [max_dim(high, 0) for _, high, _ in config]
    x = _grow(cx, x, value, lows, highs)
    cuts = [(max_dim(-low, 0), max_dim(-high, 0)) for low, high, _ in config]
    axes = [axis for axis, cut in enumerate(cuts) if any(map(_may_be_nonzero, cut))]
    ends = [_end(sizes[axis] + lows[axis] + highs[axis], cuts[axis][1]) for axis in axes]
    return cx.slice(x, [cuts[axis][0] for axis in axes], ends, axes)


def _end(size: Dim, cut: Dim) -> Dim:
    """Return the Slice end for a dim of ``size`` elements that loses its last ``cut`` elements.

    A known cut counts from the back, so the end is a constant for any size.
    """
    if is_symbolic(cut):
        return size - cut
    return -cut if cut else 2**62  # A Slice clamps its end to the size.


def as_int(count: Dim) -> Dim:
    """Return ``count`` as an int if it is a number; derivatives pad by NumPy integers."""
    return count if is_symbolic(count) else int(count)


def _may_be_nonzero(count: Dim) -> bool:
    """False for the number 0; a symbolic count may be positive."""
    return is_symbolic(count) or count != 0


def _grow(
    cx: Lowering, x: ir.Value, value: ir.Value, lows: Sequence[Dim], highs: Sequence[Dim]
) -> ir.Value:
    """Return ``x`` with ``lows[i]`` elements of ``value`` before and ``highs[i]`` after dim i."""
    axes = [
        axis
        for axis, pair in enumerate(zip(lows, highs, strict=True))
        if any(map(_may_be_nonzero, pair))
    ]
    if not axes:
        return x
    pads = [lows[axis] for axis in axes] + [highs[axis] for axis in axes]
    return edged(cx, x, cx.shape_value(pads), value, axes)


def edged(
    cx: Lowering, x: ir.Value, pads: ir.Value, value: ir.Value, axes: Sequence[int]
) -> ir.Value:
    """Return ``x`` with ``value`` around it, by Pad.

    ``pads`` has the counts before each axis of ``axes``, then the counts after each. 16-bit
    integers are padded as int32, for runtimes without 16-bit kernels.
    """
    assert x.dtype is not None
    wide = ir.DataType.INT32 if x.dtype in SHORT else x.dtype
    operands = cx.cast(x, wide), pads, cx.cast(value, wide), cx.const_i64(list(axes))
    return cx.cast(cx.op("Pad", *operands, mode="constant"), x.dtype)


def _dilated(
    cx: Lowering, x: ir.Value, value: ir.Value, sizes: Sequence[Dim], axis: int, between: int
) -> tuple[ir.Value, Dim]:
    """Return ``x`` with ``between`` elements of ``value`` between neighbors, and the new size.

    Each element becomes a row, padded by ``between`` elements. The rows are joined, and the last
    row's padding is cut off.
    """
    size = sizes[axis]
    x = cx.unsqueeze(x, [axis + 1])
    pads = cx.const_i64([0, between])
    x = edged(cx, x, pads, value, [axis + 1])
    x = cx.reshape(x, [*sizes[:axis], size * (between + 1), *sizes[axis + 1 :]])
    return cx.slice(x, [0], [-between], [axis]), size + (size - 1) * between
