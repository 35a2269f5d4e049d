"""Lower ``reduce_window_*`` to MaxPool and AveragePool, or to a fold of windows that these lack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.indexing.padding import padded
from smelt.frontends.jax.plugins.windows.monoids import of_primitive
from smelt.frontends.jax.plugins.windows.reduce_window import fold_windows
from smelt.frontends.jax.plugins.windows.windows import Window, padded_shape, window_of
from smelt.frontends.jax.registry import lowers

MOST_DIMS = 3
"""The most spatial dims for which ONNX Runtime has pooling kernels."""

MEANS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)

FLOATS = (*MEANS, ir.DataType.DOUBLE)
"""The types of pools. Other types fold exactly, and ONNX Runtime has no AveragePool of doubles."""

Pool: TypeAlias = Callable[[Lowering, ir.Value, Window, list[int]], ir.Value]
"""``pool(cx, x, window, spatial)`` pools the last dims of ``x``: the window's ``spatial`` dims."""


def _lower(name: str, pool: Pool, pool_types: Sequence[ir.DataType]) -> Callable[..., ir.Value]:
    """Return the lowering of ``reduce_window_<name>``: ``pool`` for ``pool_types``, else a fold."""

    def lower(
        cx: Lowering,
        x: ir.Value,
        *,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: Sequence[tuple[Dim, Dim]],
        base_dilation: Sequence[int],
        window_dilation: Sequence[int],
    ) -> ir.Value:
        """Lower the reduction of windows to a pooling operator if one fits, else to a fold."""
        window = window_of(cx, window_dimensions, window_strides, padding, window_dilation)
        assert x.dtype is not None
        may_pool = name == "add" or _is_plain(window, base_dilation)
        if not may_pool or not _can_pool(cx, x.dtype, window, pool_types):
            # Runtimes disagree on the extreme of padding alone, so MaxPool never sees it.
            reducer = of_primitive(name, x.dtype.numpy())
            return fold_windows(cx, reducer, [x], window, base_dilation)[0]
        x, window, shape = _zero_padded(cx, x, window, base_dilation)
        return _pooled(cx, x, window, shape, pool)

    return lower


def _can_pool(
    cx: Lowering, dtype: ir.DataType, window: Window, pool_types: Sequence[ir.DataType]
) -> bool:
    """True if a pooling operator exists: floats, up to 3 dims, no dilation before opset 19."""
    sizes = (*cx.avals_in[0].shape, *cx.avals_out[0].shape)
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return False
    dilated = any(step != 1 for step in window.dilations)
    if len(window.spatial()) > MOST_DIMS or (dilated and cx.opset < 19):
        return False
    return dtype in pool_types


def _is_plain(window: Window, base_dilation: Sequence[int]) -> bool:
    """True if a pooling operator accepts the padding, and each window holds an element."""
    dims = zip(window.pads, window.sizes, window.dilations, base_dilation, strict=True)
    return all(
        base_step == 1
        and all(not is_symbolic(pad) and 0 <= pad < size for pad in pads)
        and (dilation == 1 or tuple(pads) == (0, 0))
        for pads, size, dilation, base_step in dims
    )


def _zero_padded(
    cx: Lowering, x: ir.Value, window: Window, base_dilation: Sequence[int]
) -> tuple[ir.Value, Window, list[Dim]]:
    """Return ``x`` padded with zeros, the window without padding, and the padded shape.

    If AveragePool accepts the padding, it is left to AveragePool.
    """
    shape = list(cx.avals_in[0].shape)
    if _is_plain(window, base_dilation):
        return x, window, shape
    config = window.config(base_dilation)
    x = padded(cx, x, cx.const_like(0, x), shape, config)
    no_padding: list[tuple[Dim, Dim]] = [(0, 0)] * len(shape)
    unpadded_window = Window(window.sizes, window.strides, no_padding, window.dilations)
    return x, unpadded_window, padded_shape(shape, config)


def _pooled(
    cx: Lowering,
    x: ir.Value,
    window: Window,
    shape: list[Dim],
    pool: Pool,
) -> ir.Value:
    """Return ``x`` pooled over the window's dims.

    Pooling operators take ``[N, C, *spatial]``, so the spatial dims are moved last, and the other
    dims are merged or extended to exactly two.
    """
    spatial = window.spatial()
    if not spatial:
        return x
    other_dims = [dim for dim in range(len(shape)) if dim not in spatial]
    order = [*other_dims, *spatial]
    x = cx.transpose(x, order)
    missing = 2 - len(other_dims)
    if missing > 0:
        x = cx.unsqueeze(x, range(missing))
    elif missing < 0:
        merged = prod(shape[dim] for dim in other_dims[1:])
        x = cx.reshape(x, [shape[other_dims[0]], merged, *(shape[dim] for dim in spatial)])
    y = pool(cx, x, window, spatial)
    if missing > 0:
        y = cx.squeeze(y, range(missing))
    elif missing < 0:
        y = cx.reshape(y, [cx.avals_out[0].shape[dim] for dim in order])
    return cx.transpose(y, np.argsort(order).tolist())


def _max(cx: Lowering, x: ir.Value, window: Window, spatial: list[int]) -> ir.Value:
    """Return the maximum of each window."""
    return cx.op("MaxPool", x, **window.attributes(spatial))


def _min(cx: Lowering, x: ir.Value, window: Window, spatial: list[int]) -> ir.Value:
    """Return the minimum of each window, as the negated maximum of ``-x``."""
    return cx.op("Neg", _max(cx, cx.op("Neg", x), window, spatial))


def _sum(cx: Lowering, x: ir.Value, window: Window, spatial: list[int]) -> ir.Value:
    """Return the sum of each window, as its mean times the number of elements."""
    attributes = window.attributes(spatial)
    count = prod(attributes["kernel_shape"])
    if all(step == 1 for step in attributes["dilations"]):
        del attributes["dilations"]  # AveragePool has them from opset 19.
    mean = cx.op("AveragePool", x, count_include_pad=1, **attributes)
    return cx.op("Mul", mean, cx.const_like(count, mean))


lowers("reduce_window_max")(_lower("max", _max, FLOATS))
lowers("reduce_window_min")(_lower("min", _min, FLOATS))
lowers("reduce_window_sum")(_lower("add", _sum, MEANS))
