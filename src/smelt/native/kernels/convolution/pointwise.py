"""1x1 convolutions: the image is a matrix already. Filters are rows of a tile, pixels columns."""

from __future__ import annotations

import numpy as np

from smelt.native.kernels.convolution import direct
from smelt.native.kernels.convolution.parts import (
    constant_weights,
    finish_by_filter,
    groups,
    is_float,
)
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.even_parts import Part, even_parts
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_tile import STRIDED, Tile, packed_rows

ROWS, VECTORS = 6, 2


def takes(instance: Instance, window: Window) -> bool:
    """Enough pixels for the widest tile, which fill it."""
    enough = window.pixels >= VECTORS * MOST_LANES and not direct.fills(instance, window)
    return window.pointwise and is_float(instance) and enough


def workspace(instance: Instance, window: Window) -> int:
    """None."""
    return 0


def emit(cx: KernelContext, window: Window) -> None:
    """Columns of pixels, and for each all filters; the last columns overlap those before."""
    channels, filters = channels_of(cx)
    parts, pixels, body = even_parts(filters, ROWS), window.pixels, cx.body
    weights = constant_weights(cx)
    bias = cx.optional(2)
    packed = _pack(cx, weights, parts) if weights is not None else ""
    finish = finish_by_filter(cx)
    wide = f"{VECTORS} * LANES"
    blocks = pixels // (VECTORS * MOST_LANES)
    by_filter = blocks < 4 * body.parts and filters >= 4 * ROWS * body.parts
    pixel_loop = body.loop if by_filter else body.shared_loop
    filter_loop = body.shared_loop if by_filter else body.loop
    with groups(cx, window), pixel_loop("j", pixels, step=wide):
        body.line(f"const ptrdiff_t at = j + {wide} <= {pixels} ? j : {pixels} - {wide};")
        for part in parts:
            walk = packed_rows(part.length) if packed else STRIDED
            start_by, here = "row" if bias else "", finish.at("o", "at")
            tile = Tile(part.length, VECTORS, walk, start_by, here)
            end = part.first + part.length * part.count
            with filter_loop("o", end, part.first, part.length):
                a = f"{packed or cx.input(1).name} + (g * {filters} + o) * {channels}"
                strides = [] if packed else [str(channels), "1"]
                arguments = [str(channels), a, *strides, "image + at", str(pixels)]
                start = f"{bias.name} + g * {filters} + o" if bias else ""
                tile.call(
                    cx, arguments, f"out + o * {pixels} + at", pixels, f"j - at, {wide}", start
                )


def _pack(cx: KernelContext, weights: np.ndarray, parts: list[Part]) -> str:
    """The weights of each part of the filters, channel by channel."""
    blocks = [
        weights[g, o : o + part.length, :, 0].T.reshape(-1)
        for g in range(weights.shape[0])
        for part in parts
        for o in range(part.first, part.first + part.length * part.count, part.length)
    ]
    return cx.constant(np.concatenate(blocks), cx.type(1))
