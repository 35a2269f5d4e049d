"""``reduce_window_*`` as MaxPool and AveragePool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.padding import padded
from smelt.frontends.jax.registry import lowers

EXACT_IN_DOUBLE = 32
"""Bits of the integers that float64 compares exactly."""

MOST_DIMS = 3

POOLED = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class Window:
    """A window on every dim: sizes, strides, padding and dilation."""

    sizes: list[int]
    strides: list[int]
    pads: list[tuple[Dim, Dim]]
    dilations: list[int]

    def spatial(self) -> list[int]:
        """The dims on which it does something."""
        facts = zip(self.sizes, self.strides, self.pads, strict=True)
        return [
            i
            for i, (size, stride, pads) in enumerate(facts)
            if size != 1 or stride != 1 or tuple(pads) != (0, 0)
        ]

    def attributes(self, dims: Sequence[int]) -> dict[str, Any]:
        """What pooling operators call it, on ``dims``."""
        lows = [int(self.pads[dim][0]) for dim in dims]
        highs = [int(self.pads[dim][1]) for dim in dims]
        return {
            "kernel_shape": [self.sizes[dim] for dim in dims],
            "strides": [self.strides[dim] for dim in dims],
            "pads": lows + highs,
            "dilations": [self.dilations[dim] for dim in dims],
        }


def _lower(
    pool: Callable[[Lowering, ir.Value, Window, list[int]], ir.Value], empty: float
) -> Callable[..., ir.Value]:
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
        if any(is_symbolic(size) for size in window_dimensions):
            raise cx.unsupported("the window has a symbolic size")
        sizes, strides, dilations = (
            [int(n) for n in ns] for ns in (window_dimensions, window_strides, window_dilation)
        )
        window = Window(sizes, strides, list(padding), dilations)
        assert x.dtype is not None
        wide = cx.cast(x, _computed_in(cx, x.dtype))
        wide, window, shape = _prepared(cx, wide, window, base_dilation, empty)
        return cx.cast(_pooled(cx, wide, window, shape, pool), x.dtype)

    return lower


def _computed_in(cx: Lowering, dtype: ir.DataType) -> ir.DataType:
    if dtype in POOLED:
        return dtype
    if dtype.is_integer() and dtype.bitwidth <= EXACT_IN_DOUBLE:
        return ir.DataType.DOUBLE
    raise cx.unsupported(f"ONNX pools no {dtype.name.lower()}")


def _prepared(
    cx: Lowering, x: ir.Value, window: Window, base_dilation: Sequence[int], empty: float
) -> tuple[ir.Value, Window, list[Dim]]:
    """``x`` with the padding that pooling operators do not take, and its shape then."""
    shape = list(cx.avals_in[0].shape)
    plain = all(step == 1 for step in base_dilation) and all(
        not is_symbolic(p) and 0 <= p < size
        for pair, size in zip(window.pads, window.sizes, strict=True)
        for p in pair
        if tuple(pair) != (0, 0)
    )
    if plain:
        return x, window, shape
    config = [
        (low, high, int(step) - 1)
        for (low, high), step in zip(window.pads, base_dilation, strict=True)
    ]
    x = padded(cx, x, cx.const_like(empty, x), shape, config)
    shape = [
        size + (size - 1) * between + low + high
        for size, (low, high, between) in zip(shape, config, strict=True)
    ]
    none: list[tuple[Dim, Dim]] = [(0, 0)] * len(shape)
    return x, Window(window.sizes, window.strides, none, window.dilations), shape


def _pooled(
    cx: Lowering,
    x: ir.Value,
    window: Window,
    shape: list[Dim],
    pool: Callable[[Lowering, ir.Value, Window, list[int]], ir.Value],
) -> ir.Value:
    """Pool over the dims of the window, moved last, behind exactly two others."""
    spatial = window.spatial()
    if not spatial:
        return x
    if len(spatial) > MOST_DIMS:
        raise cx.unsupported(f"the window covers {len(spatial)} dims, and pooling at most 3")
    others = [dim for dim in range(len(shape)) if dim not in spatial]
    order = [*others, *spatial]
    x = cx.transpose(x, order)
    missing = 2 - len(others)
    if missing > 0:
        x = cx.unsqueeze(x, range(missing))
    elif missing < 0:
        merged = prod(shape[dim] for dim in others[1:])
        x = cx.reshape(x, [shape[others[0]], merged, *(shape[dim] for dim in spatial)])
    y = pool(cx, x, window, spatial)
    if missing > 0:
        y = cx.squeeze(y, range(missing))
    elif missing < 0:
        y = cx.reshape(y, [cx.avals_out[0].shape[dim] for dim in order])
    return cx.transpose(y, np.argsort(order).tolist())


def _max(cx: Lowering, x: ir.Value, window: Window, spatial: list[int]) -> ir.Value:
    return cx.op("MaxPool", x, **window.attributes(spatial))


def _min(cx: Lowering, x: ir.Value, window: Window, spatial: list[int]) -> ir.Value:
    return cx.op("Neg", _max(cx, cx.op("Neg", x), window, spatial))


def _sum(cx: Lowering, x: ir.Value, window: Window, spatial: list[int]) -> ir.Value:
    """The mean, times the number of elements."""
    if np.dtype(cx.avals_in[0].dtype).kind in "iu":
        raise cx.unsupported("ONNX takes no mean of integers", fix="cast to float32 before")
    attributes = window.attributes(spatial)
    count = prod(attributes["kernel_shape"])
    if all(step == 1 for step in attributes["dilations"]):
        del attributes["dilations"]  # AveragePool has them from opset 19.
    elif cx.opset < 19:
        raise cx.unsupported("AveragePool has dilations from opset 19", fix="raise the opset")
    mean = cx.op("AveragePool", x, count_include_pad=1, **attributes)
    return cx.op("Mul", mean, cx.const_like(count, mean))


lowers("reduce_window_max")(_lower(_max, -np.inf))
lowers("reduce_window_min")(_lower(_min, np.inf))
lowers("reduce_window_sum")(_lower(_sum, 0))
