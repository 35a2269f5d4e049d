"""Padding: at the edges, negative, and between elements."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

SHORT = (ir.DataType.INT16, ir.DataType.UINT16)

Config = Sequence[tuple[Dim, Dim, int]]


@lowers("pad")
def pad(cx: Lowering, x: ir.Value, value: ir.Value, *, padding_config: Config) -> ir.Value:
    return padded(cx, x, value, cx.avals_in[0].shape, padding_config)


def padded(
    cx: Lowering, x: ir.Value, value: ir.Value, shape: Sequence[Dim], config: Config
) -> ir.Value:
    """``x`` of ``shape`` with ``(low, high, between)`` elements of ``value`` added on each dim.

    Elements go between first; then the edges grow, or are cut where the number is negative.
    """
    sizes = list(shape)
    config = [(as_int(low), as_int(high), int(between)) for low, high, between in config]
    for axis, (_, _, between) in enumerate(config):
        if between and not (isinstance(sizes[axis], int) and sizes[axis] <= 1):
            x, sizes[axis] = _dilated(cx, x, value, sizes, axis, int(between))
    grown = [(axis, low, high) for axis, (low, high, _) in enumerate(config)]
    lows = [(axis, low) for axis, low, _ in grown]
    highs = [(axis, high) for axis, _, high in grown]
    x = _grow(cx, x, value, lows, highs)
    cut = [
        (axis, _negative(low), _negative(high))
        for axis, low, high in grown
        if _negative(low) or _negative(high)
    ]
    axes = [axis for axis, _, _ in cut]
    starts = [low for _, low, _ in cut]
    # An end counted from the back; to the very end where nothing is cut there.
    ends = [-high if high else 2**62 for _, _, high in cut]
    return cx.slice(x, starts, ends, axes)


def as_int(count: Dim) -> Dim:
    """``count`` as an int if it is a number: derivatives pad by NumPy's."""
    return count if is_symbolic(count) else int(count)


def _negative(count: Dim) -> int:
    """How many elements a negative number cuts; symbolic numbers are at least 0."""
    return -count if isinstance(count, int) and count < 0 else 0


def _grow(
    cx: Lowering,
    x: ir.Value,
    value: ir.Value,
    lows: Sequence[tuple[int, Dim]],
    highs: Sequence[tuple[int, Dim]],
) -> ir.Value:
    for _, count in (*lows, *highs):
        if is_symbolic(count) and not _is_positive(count):
            raise cx.unsupported(f"the padding {count} may be negative")
    before = {axis: count for axis, count in lows if is_symbolic(count) or count > 0}
    after = {axis: count for axis, count in highs if is_symbolic(count) or count > 0}
    axes = sorted({*before, *after})
    if not axes:
        return x
    pads = [before.get(a, 0) for a in axes] + [after.get(a, 0) for a in axes]
    return edged(cx, x, cx.shape_value(pads), value, axes)


def edged(
    cx: Lowering, x: ir.Value, pads: ir.Value, value: ir.Value, axes: Sequence[int]
) -> ir.Value:
    """``x`` with ``value`` around it; runtimes pad no integers of 16 bits, and those of 32."""
    assert x.dtype is not None
    wide = ir.DataType.INT32 if x.dtype in SHORT else x.dtype
    given = cx.cast(x, wide), pads, cx.cast(value, wide), cx.const_i64(list(axes))
    return cx.cast(cx.op("Pad", *given, mode="constant"), x.dtype)


def _is_positive(count: Dim) -> bool:
    from smelt.frontends.jax.compat import InconclusiveDim

    try:
        return bool(count >= 0)
    except InconclusiveDim:
        return False


def _dilated(
    cx: Lowering, x: ir.Value, value: ir.Value, sizes: Sequence[Dim], axis: int, between: int
) -> tuple[ir.Value, Dim]:
    """Each element followed by ``between`` others, without those after the last."""
    size = sizes[axis]
    x = cx.unsqueeze(x, [axis + 1])
    pads = cx.const_i64([0, between])
    x = edged(cx, x, pads, value, [axis + 1])
    x = cx.reshape(x, [*sizes[:axis], size * (between + 1), *sizes[axis + 1 :]])
    return cx.slice(x, [0], [-between], [axis]), size + (size - 1) * between
