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
    reducer = monoid(jaxpr, consts)
    if not reducer.is_known:
        return _in_order(cx, reducer, xs, initial, window, base_dilation)
    neutral = is_neutral(reducer, [cx.known(start) for start in initial])
    return fold_windows(cx, reducer, xs, window, base_dilation, () if neutral else initial)


def fold_windows(
    cx: Lowering,
    reducer: Monoid,
    xs: Sequence[ir.Value],
    window: Window,
    base_dilation: Sequence[int],
    initial: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """Return the fold of each window of ``xs`` by a monoid, whose identity fills the padding.

    ``initial``, if there is one, is combined before the first element of each window.
    """
    assert reducer.neutral is not None
    config = window.config(base_dilation)
    source, shape = cx.avals_in[0].shape, tuple(cx.avals_out[0].shape)
    fills = [cx.constant(neutral) for neutral in reducer.neutral]
    if _is_empty(shape):
        return [cx.expand(fill, shape) for fill in fills]
    sizes = tuple(padded_shape(source, config))
    padded_inputs = [
        Operand(padded(cx, reducer.wide(cx, x), reducer.wide(cx, fill), source, config), sizes)
        for x, fill in zip(xs, fills, strict=True)
    ]
    results = fold(cx, reducer, padded_inputs, window, shape)
    if initial:
        starts = [reducer.wide(cx, start) for start in initial]
        starts_everywhere = [Operand(cx.expand(start, shape), shape) for start in starts]
        results = reducer.combine(cx, starts_everywhere, results)
    return [
        cx.cast(result.value, np.dtype(aval.dtype))
        for result, aval in zip(results, cx.avals_out, strict=True)
    ]


def _in_order(
    cx: Lowering,
    reducer: Monoid,
    xs: Sequence[ir.Value],
    initial: Sequence[ir.Value],
    window: Window,
    base_dilation: Sequence[int],
) -> list[ir.Value]:
    """Return each window folded from ``initial``, element by element, without the padding."""
    shape = tuple(cx.avals_out[0].shape)
    before = [Operand(cx.expand(start, shape), shape) for start in initial]
    if _is_empty(shape):
        return [start.value for start in before]
    rows = [_rows(cx, x, cx.const_like(0, x), window, base_dilation) for x in xs]
    valid, several = None, sum(size > 1 for size in window.sizes) > 1
    if _is_padded(window, base_dilation):
        # With padding, XLA walks some windows over several dims column by column.
        check_order(cx, reducer, grouped=several, moved=several)
        inside = cx.op("Expand", cx.constant(np.asarray(True)), cx.op("Shape", xs[0]))
        valid = _rows(cx, inside, cx.constant(np.asarray(False)), window, base_dilation)
    results = fold_rows(cx, reducer, rows, before, valid)
    return [result.value for result in results]


def _rows(
    cx: Lowering, x: ir.Value, fill: ir.Value, window: Window, base_dilation: Sequence[int]
) -> Operand:
    """Return ``[window elements, *windows]``: row i holds element i of each window."""
    shape = tuple(cx.avals_out[0].shape)
    padded_input = padded(cx, x, fill, cx.avals_in[0].shape, window.config(base_dilation))
    elements = patches(cx, padded_input, window, shape)
    rank = len(shape)
    return Operand(cx.transpose(elements, [rank, *range(rank)]), (prod(window.sizes), *shape))


def _is_padded(window: Window, base_dilation: Sequence[int]) -> bool:
    """True if an edge may grow, or zeros are inserted between elements."""
    edges = any(not isinstance(p, int) or p > 0 for pair in window.pads for p in pair)
    return edges or any(step != 1 for step in base_dilation)


def _is_empty(shape: Sequence[Dim]) -> bool:
    """True if a dim is known to be 0."""
    return any(isinstance(size, int) and size == 0 for size in shape)
