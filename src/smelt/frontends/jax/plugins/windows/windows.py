"""Sliding windows: their parameters, their elements, and their folds by a monoid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.indexing.padding import as_int
from smelt.frontends.jax.plugins.programs.creation import counted
from smelt.frontends.jax.plugins.windows.monoids import Monoid

END = 2**62
"""The end of a Slice that reads up to the last element."""


@dataclass(frozen=True)
class Window:
    """A window on every dim: sizes, strides, padding and dilation."""

    sizes: list[int]
    strides: list[int]
    pads: list[tuple[Dim, Dim]]
    dilations: list[int]

    def spatial(self) -> list[int]:
        """Return the dims on which the window is not trivial."""
        dims = zip(self.sizes, self.strides, self.pads, strict=True)
        return [
            axis
            for axis, (size, stride, pads) in enumerate(dims)
            if size != 1 or stride != 1 or tuple(pads) != (0, 0)
        ]

    def attributes(self, dims: Sequence[int]) -> dict[str, Any]:
        """Return the attributes of pooling operators on ``dims``."""
        lows = [int(self.pads[dim][0]) for dim in dims]
        highs = [int(self.pads[dim][1]) for dim in dims]
        return {
            "kernel_shape": [self.sizes[dim] for dim in dims],
            "strides": [self.strides[dim] for dim in dims],
            "pads": lows + highs,
            "dilations": [self.dilations[dim] for dim in dims],
        }

    def config(self, base_dilation: Sequence[int]) -> list[tuple[Dim, Dim, int]]:
        """Return the padding and the base dilation as the ``padding_config`` of ``pad``."""
        pairs = zip(self.pads, base_dilation, strict=True)
        return [(low, high, int(step) - 1) for (low, high), step in pairs]


def window_of(
    cx: Lowering,
    sizes: Sequence[Dim],
    strides: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    dilations: Sequence[int],
) -> Window:
    """Return the window that a primitive describes; refuses symbolic sizes."""
    if any(is_symbolic(size) for size in sizes):
        raise cx.unsupported("the window has a symbolic size")
    numbers = [[int(number) for number in listed] for listed in (sizes, strides, dilations)]
    pads = [(as_int(low), as_int(high)) for low, high in padding]
    return Window(numbers[0], numbers[1], pads, numbers[2])


def padded_shape(shape: Sequence[Dim], config: Sequence[tuple[Dim, Dim, int]]) -> list[Dim]:
    """Return the shape after ``pad`` by ``config``."""
    return [
        size + max(size - 1, 0) * between + low + high if between else size + low + high
        for size, (low, high, between) in zip(shape, config, strict=True)
    ]


def fold(
    cx: Lowering, monoid: Monoid, xs: Sequence[Operand], window: Window, shape: Sequence[Dim]
) -> list[Operand]:
    """Return each window of ``xs``, already padded, folded to one element of ``shape``.

    The last dim is folded first, so that elements are combined in order.
    """
    folded = list(xs)
    for axis in reversed(window.spatial()):
        step = window.dilations[axis]
        folded = _fold_axis(
            cx, monoid, folded, (axis, window.sizes[axis], window.strides[axis], step), shape[axis]
        )
    return folded


def _fold_axis(
    cx: Lowering,
    monoid: Monoid,
    xs: list[Operand],
    along: tuple[int, int, int, int],
    count: Dim,
) -> list[Operand]:
    """Return each window along one axis folded, in O(log size) steps.

    ``along`` is (axis, size, stride, dilation). The loop doubles ``width``: ``xs[i]`` is the fold
    of ``width`` elements from i on. Each bit of ``size`` takes one such fold, and the folds are
    combined in order: a window of 5 is the fold of 1 element, then of the next 4.
    """
    axis, size, stride, dilation = along
    result: list[Operand] | None = None
    covered, width = 0, 1
    while True:
        if size & width:
            elements_behind = (size - width - covered) * dilation
            bounds = (covered * dilation, -elements_behind or END, stride)
            fold_of_width = [_slice_axis(cx, x, axis, bounds, count) for x in xs]
            result = fold_of_width if result is None else monoid.combine(cx, result, fold_of_width)
            covered += width
        if covered == size:
            assert result is not None
            return result
        reach = width * dilation
        new_size = xs[0].shape[axis] - reach
        starts = [_slice_axis(cx, x, axis, (0, -reach, 1), new_size) for x in xs]
        partners = [_slice_axis(cx, x, axis, (reach, END, 1), new_size) for x in xs]
        xs = monoid.combine(cx, starts, partners)
        width *= 2


def _slice_axis(
    cx: Lowering, x: Operand, axis: int, bounds: tuple[int, int, int], count: Dim
) -> Operand:
    """Return ``x[start:end:step]`` on ``axis``, which has ``count`` elements."""
    start, end, step = bounds
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if (start, end, step) == (0, END, 1):
        return x
    return Operand(cx.slice(x.value, [start], [end], [axis], [step]), shape)


def patches(cx: Lowering, x: ir.Value, window: Window, shape: Sequence[Dim]) -> ir.Value:
    """Return ``[*shape, window elements]``: the elements of each window of ``x``, already padded.

    ``shape`` holds the number of windows on each dim. One Gather per spatial dim splits the dim
    into window and offset; a Transpose moves the offsets last.
    """
    spatial, rank = window.spatial(), len(shape)
    for axis in reversed(spatial):
        offsets = np.arange(window.sizes[axis]) * window.dilations[axis]
        starts = counted(cx, shape[axis], np.dtype(np.int64))
        starts = cx.op("Mul", starts, cx.const_i64(window.strides[axis]))
        places = cx.op("Add", cx.unsqueeze(starts, [1]), cx.constant(offsets))
        x = cx.op("Gather", x, places, axis=axis)
    window_dims, offset_dims, dim = [], [], 0
    for axis in range(rank):
        window_dims.append(dim)
        offset_dims += [dim + 1] if axis in spatial else []
        dim += 2 if axis in spatial else 1
    x = cx.transpose(x, [*window_dims, *offset_dims])
    return cx.reshape(x, [*shape, prod(window.sizes)])
