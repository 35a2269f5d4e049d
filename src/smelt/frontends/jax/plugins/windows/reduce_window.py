"""``reduce_window`` by any computation, over one or several arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, Jaxpr
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.indexing.padding import padded
from smelt.frontends.jax.plugins.windows.monoid_reductions import fold_rows
from smelt.frontends.jax.plugins.windows.monoids import Monoid, check_order, is_neutral, monoid
from smelt.frontends.jax.plugins.windows.windows import (
    Window,
    fold,
    padded_shape,
    patches,
    window_of,
)
from smelt.frontends.jax.registry import lowers


@lowers("reduce_window")
def reduce_window(
    cx: Lowering,
    *operands: ir.Value,
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> list[ir.Value]:
    """Lower ``reduce_window``; padding is skipped, as XLA does on a CPU for any initial value."""
    xs, initial = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    window = window_of(cx, window_dimensions, window_strides, padding, window_dilation)
    computed = monoid(jaxpr, consts)
    if not computed.is_known:
        return _in_order(cx, computed, xs, initial, window, base_dilation)
    neutral = is_neutral(computed, [cx.known(start) for start in initial])
    return fold_windows(cx, computed, xs, window, base_dilation, () if neutral else initial)


def fold_windows(
    cx: Lowering,
    computed: Monoid,
    xs: Sequence[ir.Value],
    window: Window,
    base_dilation: Sequence[int],
    initial: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """Return each window of ``xs`` folded by a monoid, whose identity fills the padding.

    ``initial``, if given, is combined before the first element of each window.
    """
    assert computed.neutral is not None
    config = window.config(base_dilation)
    source, shape = cx.avals_in[0].shape, tuple(cx.avals_out[0].shape)
    fills = [cx.constant(neutral) for neutral in computed.neutral]
    if _is_empty(shape):
        return [cx.expand(fill, shape) for fill in fills]
    sizes = tuple(padded_shape(source, config))
    grown = [
        Operand(padded(cx, computed.wide(cx, x), computed.wide(cx, fill), source, config), sizes)
        for x, fill in zip(xs, fills, strict=True)
    ]
    results = fold(cx, computed, grown, window, shape)
    if initial:
        starts = [computed.wide(cx, start) for start in initial]
        before = [Operand(cx.expand(start, shape), shape) for start in starts]
        results = computed.combine(cx, before, results)
    return [
        cx.cast(result.value, np.dtype(aval.dtype))
        for result, aval in zip(results, cx.avals_out, strict=True)
    ]


def _in_order(
    cx: Lowering,
    computed: Monoid,
    xs: Sequence[ir.Value],
    initial: Sequence[ir.Value],
    window: Window,
    base_dilation: Sequence[int],
) -> list[ir.Value]:
    """Return ``initial`` folded with the elements of each window in order, without the padding."""
    shape = tuple(cx.avals_out[0].shape)
    before = [Operand(cx.expand(start, shape), shape) for start in initial]
    if _is_empty(shape):
        return [start.value for start in before]
    rows = [_rows(cx, x, cx.const_like(0, x), window, base_dilation) for x in xs]
    valid, several = None, sum(size > 1 for size in window.sizes) > 1
    if _is_padded(window, base_dilation):
        # With padding, XLA walks some windows over several dims column by column.
        check_order(cx, computed, grouped=several, moved=several)
        inside = cx.op("Expand", cx.constant(np.asarray(True)), cx.op("Shape", xs[0]))
        valid = _rows(cx, inside, cx.constant(np.asarray(False)), window, base_dilation)
    results = fold_rows(cx, computed, rows, before, valid)
    return [result.value for result in results]


def _rows(
    cx: Lowering, x: ir.Value, fill: ir.Value, window: Window, base_dilation: Sequence[int]
) -> Operand:
    """Return the first elements of all windows, the second ones, ..., along a new first dim."""
    shape = tuple(cx.avals_out[0].shape)
    grown = padded(cx, x, fill, cx.avals_in[0].shape, window.config(base_dilation))
    cells = patches(cx, grown, window, shape)
    rank = len(shape)
    return Operand(cx.transpose(cells, [rank, *range(rank)]), (prod(window.sizes), *shape))


def _is_padded(window: Window, base_dilation: Sequence[int]) -> bool:
    edges = any(not isinstance(p, int) or p > 0 for pair in window.pads for p in pair)
    return edges or any(step != 1 for step in base_dilation)


def _is_empty(shape: Sequence[Dim]) -> bool:
    return any(isinstance(size, int) and size == 0 for size in shape)
