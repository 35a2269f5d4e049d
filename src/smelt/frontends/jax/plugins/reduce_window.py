"""``reduce_window`` by any associative computation, over one or several arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, Jaxpr
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.monoids import Monoid, identity, is_neutral, monoid
from smelt.frontends.jax.plugins.padding import padded
from smelt.frontends.jax.plugins.windows import Window, fold, padded_shape, window_of
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
    """Padding counts as absent: it gets the identity, and the initial value comes in once."""
    xs, initial = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    window = window_of(cx, window_dimensions, window_strides, padding, window_dilation)
    computed = monoid(cx, jaxpr, consts)
    known = [cx.known(start) for start in initial]
    numbers = [start for start in known if start is not None]
    neutral = len(numbers) == len(known) and is_neutral(computed, numbers)
    fills = initial
    if computed.name:
        fills = (cx.constant(identity(computed.name, np.dtype(cx.avals_in[0].dtype))),)
    elif not neutral and _is_padded(window, base_dilation):
        why = "the initial value is not neutral to the computation, so padding would count"
        raise cx.unsupported(why)
    return fold_windows(cx, computed, xs, fills, window, base_dilation, () if neutral else initial)


def _is_padded(window: Window, base_dilation: Sequence[int]) -> bool:
    edges = any(not isinstance(p, int) or p > 0 for pair in window.pads for p in pair)
    return edges or any(step != 1 for step in base_dilation)


def fold_windows(
    cx: Lowering,
    computed: Monoid,
    xs: Sequence[ir.Value],
    fills: Sequence[ir.Value],
    window: Window,
    base_dilation: Sequence[int],
    initial: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """Each window of ``xs`` as one element, of ``fills`` where it covers padding.

    ``initial``, if given, comes before the first element of each.
    """
    config = window.config(base_dilation)
    source, shape = cx.avals_in[0].shape, tuple(cx.avals_out[0].shape)
    if any(isinstance(size, int) and size == 0 for size in shape):
        return [cx.expand(fill, shape) for fill in fills]
    sizes = tuple(padded_shape(source, config))
    grown = [
        Operand(
            padded(cx, _wide(cx, computed, x), _wide(cx, computed, fill), source, config), sizes
        )
        for x, fill in zip(xs, fills, strict=True)
    ]
    results = fold(cx, computed, grown, window, shape)
    if initial:
        starts = [_wide(cx, computed, start) for start in initial]
        before = [Operand(cx.expand(start, shape), shape) for start in starts]
        results = computed.combine(cx, before, results)
    return [
        cx.cast(result.value, np.dtype(aval.dtype))
        for result, aval in zip(results, cx.avals_out, strict=True)
    ]


def _wide(cx: Lowering, computed: Monoid, x: ir.Value) -> ir.Value:
    assert x.dtype is not None
    return cx.cast(x, computed.widened(x.dtype))
