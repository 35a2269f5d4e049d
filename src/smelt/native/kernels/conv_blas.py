"""Convolutions by BLAS: ``smelt.native::ConvByProducts`` is a Conv that is worth it.

Rows of output pixels and all that the kernel sees from them are gathered as a matrix ``[channel,
kernel position][pixel]``, which the weights multiply while it is in the cache.
The image of a pointwise convolution is such a matrix already.
"""

from __future__ import annotations

import math

from smelt.native.kernels.blas import (
    FEWEST_ROWS,
    LARGEST,
    PLAIN,
    ROWS,
    blocks,
    finish_block,
    pointer,
)
from smelt.native.kernels.convolution.gather import band_function
from smelt.native.kernels.convolution.parts import (
    finish_by_filter,
    groups,
    is_float,
    strides_beside,
)
from smelt.native.kernels.convolution.window import Window, channels_of, window_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.vector_tile import plus
from smelt.program.storage import Needs

CONV = "smelt.native::ConvByProducts"
GATHERED = 1 << 16
"""Elements of a matrix of what kernels see that still lie near the processor."""


def products_of(instance: Instance) -> tuple[int, int, int]:
    """Filters, pixels and terms of the product of a group; zeros if BLAS takes none."""
    if not is_float(instance):
        return 0, 0, 0
    channels, filters = channels_of(instance)
    window = window_of(instance)
    sizes = (filters, window.pixels, channels * math.prod(window.kernel))
    return sizes if max(sizes) <= LARGEST else (0, 0, 0)


def _rows(instance: Instance, window: Window) -> int:
    """Rows of output pixels that are gathered at once."""
    _, height, width = window.output
    terms = products_of(instance)[2]
    pixels = max(FEWEST_ROWS, GATHERED // terms)
    return max(1, min(height, pixels // width))


def _needs(instance: Instance) -> Needs:
    window = window_of(instance)
    if window.pointwise:
        return Needs()
    # The last of the blocks is longer by up to a half.
    rows = min(window.output[1], _rows(instance, window) * 3 // 2 + 1)
    terms = products_of(instance)[2]
    return Needs(workspace=terms * rows * window.output[2] * instance.type(0).size)


def _finishes(instance: Instance, shape: tuple[int, ...]) -> bool:
    return strides_beside(instance, shape) is not None


@kernel(CONV, needs=_needs, finishes=_finishes)
def conv_by_products(cx: KernelContext) -> None:
    """For each sample and group, calls for as many pixels as stay in the cache."""
    window = window_of(cx)
    with groups(cx, window):
        if window.pointwise:
            step = max(FEWEST_ROWS, GATHERED // products_of(cx)[2])
            for first, count in blocks(cx, "j", window.pixels, step):
                _multiply(cx, f"image + {first}", window.pixels, first, count)
        else:
            _gathered(cx, window)


def _gathered(cx: KernelContext, window: Window) -> None:
    scratch = cx.scratch(cx.type(0))
    band = band_function(cx, cx.type(0), window, channels_of(cx)[0])
    depth, height, width = window.output
    with cx.body.loop("d", depth):
        for first, rows in blocks(cx, "h", height, _rows(cx, window)):
            cx.body.line(f"{band}(image, {scratch}, d, {first}, 0, {rows}, {width}, 0);")
            at = f"(d * {height} + {first}) * {width}"
            _multiply(cx, scratch, rows * width, at, rows * width)


def _multiply(cx: KernelContext, matrix: str, pitch: int, at: str, count: int) -> None:
    """Weights by ``matrix``, for ``count`` pixels from ``at``, finished."""
    filters, pixels, terms = products_of(cx)
    weights = plus(cx.input(1).name, "g", filters * terms)
    target, bias = f"out + {at}", cx.optional(2)
    cx.body.line(
        f"{pointer(cx, 'sgemm')}({ROWS}, {PLAIN}, {PLAIN}, {filters}, {count}, {terms}, 1, "
        f"{weights}, {terms}, {matrix}, {pitch}, 0, {target}, {pixels});"
    )
    if cx.instruction.finish or bias:
        finish = finish_by_filter(cx).at("0", at)
        start = plus(bias.name, "g", filters) if bias else ""
        finish_block(cx, finish, target, pixels, (filters, count), start)
