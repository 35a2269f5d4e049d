"""Convolutions of any kind: bands of output pixels, gathered and multiplied.

A band is a few output pixels and everything that the kernel reads for them, gathered into scratch
space as a matrix ``[channel, kernel position][pixel]``. Gathering handles padding, strides and
dilations. The band's convolution is then a matrix product with the weights, which starts at the
bias and ends with Relu. A pointwise convolution multiplies the image itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import ends_in_relu
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.portable_micro_kernel import Product, columns_for, emit_columns, padded
from smelt.native.types import CType


@dataclass(frozen=True, slots=True)
class Bands:
    """How output pixels are split: ``rows`` x ``columns`` per band, about as wide as a tile."""

    rows: int
    columns: int


def _bands(instance: Instance, window: Window) -> Bands:
    """Return the band of pixels that is gathered at a time: part of a row, or whole rows."""
    width = columns_for(channels_of(instance)[1], instance.type(0))
    height, pixels = window.output[1], max(window.output[2], 1)
    if pixels >= width:
        return Bands(1, width)
    return Bands(max(1, min(height, width // pixels)), pixels)


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of a band, 0 for a pointwise convolution."""
    if window.pointwise:
        return 0
    bands = _bands(instance, window)
    depth = channels_of(instance)[0] * math.prod(window.kernel)
    pixels = padded(bands.rows * bands.columns)
    return max(depth, 1) * pixels * instance.type(0).size


def emit(cx: KernelContext, window: Window) -> None:
    """Write loops over samples, groups, planes and bands; then the tiles of a product."""
    operand, weights, output = cx.input(0), cx.input(1), cx.output()
    bias = cx.optional(2)
    group = cx.int("group")
    channels, filters = channels_of(cx)
    depth = channels * math.prod(window.kernel)
    pixels, image = math.prod(window.output), math.prod(window.input)
    product = Product(
        operand.type,
        output.type,
        m=filters,
        n=0,  # ``n`` and ``b`` follow with the pixels of a tile
        k=depth,
        a=f"{weights.name} + g * {filters * depth}",
        a_m=depth,
        a_k=1,
        b="",
        b_k=0,
        c="out",
        c_m=pixels,
        bias=f"{bias.name} + g * {filters}" if bias else "",
        relu=ends_in_relu(cx),
    )
    with cx.body.loops(("n", "g"), (operand.shape[0], group)):
        source = f"{operand.name} + (n * {group} + g) * {channels * image}"
        target = f"{output.name} + (n * {group} + g) * {filters * pixels}"
        cx.body.line(f"const {operand.type.name} *image = {source};")
        cx.body.line(f"{output.type.name} *out = {target};")
        if window.pointwise:
            _emit_pointwise(cx, product, pixels)
        else:
            _emit_bands(cx, product, window, channels)


@dataclass(frozen=True, slots=True)
class Cut:
    """A range of a dim: ``length`` positions from ``start``, repeated by a loop up to ``end``.

    ``end`` is 0 for the rest of a dim, which has no loop.
    """

    start: str
    length: int
    end: int


def _cuts(var: str, size: int, part: int) -> list[Cut]:
    """Return ``size`` positions as a loop ``var`` over ranges of ``part``, and the rest."""
    divisible = size - size % part
    cuts = [Cut(var, part, divisible)] if divisible else []
    return cuts + ([Cut(str(divisible), size - divisible, 0)] if size > divisible else [])


@contextmanager
def _loop(cx: KernelContext, cut: Cut) -> Iterator[None]:
    """Write the loop of a cut, if it has one."""
    if not cut.end:
        yield
        return
    with cx.body.loop(cut.start, cut.end, step=cut.length):
        yield


def _emit_pointwise(cx: KernelContext, product: Product, pixels: int) -> None:
    """Write the product of the filters with the image itself, in panels of pixels."""
    width = min(columns_for(product.m, product.element), pixels)
    for cut in _cuts("j", pixels, width):
        with _loop(cx, cut):
            right, result = f"image + {cut.start}", f"{product.c} + {cut.start}"
            emit_columns(cx, replace(product, n=cut.length, b=right, b_k=pixels, c=result))


def _emit_bands(cx: KernelContext, product: Product, window: Window, channels: int) -> None:
    """Write the loops over bands: gather each, then multiply it."""
    bands = _bands(cx, window)
    scratch = cx.scratch(product.element)
    gather = band_function(cx, product.element, window, channels)
    _, out_height, out_width = window.output
    with cx.body.loop("d", window.output[0]):
        for row in _cuts("h", out_height, bands.rows):
            for column in _cuts("w", out_width, bands.columns):
                pixels = row.length * column.length
                width = padded(pixels)
                at = f"d, {row.start}, {column.start}, {row.length}, {column.length}"
                c = f"{product.c} + (d * {out_height} + {row.start}) * {out_width} + {column.start}"
                with _loop(cx, row), _loop(cx, column):
                    cx.body.line(f"{gather}(image, {scratch}, {at}, {width - pixels});")
                    band = replace(product, n=pixels, width=width, b=scratch, b_k=width, c=c)
                    emit_columns(cx, band)


def band_function(cx: KernelContext, type_: CType, window: Window, channels: int) -> str:
    """Return the name of a function ``(x, band, d, h, w, rows, columns, pad)`` that fills a band.

    It gathers the inputs of ``rows`` x ``columns`` outputs from plane ``d``, row ``h`` and column
    ``w`` on. Elements outside of the image and ``pad`` elements after each row are 0. In the C,
    ``low`` to ``high`` are the output columns whose input is inside of the image.
    """
    fields = (window.input, window.kernel, window.strides, window.dilations, window.begin)
    letters = zip("ikgdp", fields, strict=True)
    name = f"band_{type_.name}_c{channels}_" + "_".join(
        letter + "x".join(map(str, field)) for letter, field in letters
    )
    (i0, i1, i2), (k0, k1, k2), (s0, s1, s2), (d0, d1, d2), (p0, p1, p2) = fields
    text = f"""static void {name}(const T *restrict x, T *restrict band,
    ptrdiff_t d, ptrdiff_t h, ptrdiff_t w, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t pad)
{{
    for (ptrdiff_t c = 0; c < {channels}; ++c)
    for (ptrdiff_t k0 = 0; k0 < {k0}; ++k0)
    for (ptrdiff_t k1 = 0; k1 < {k1}; ++k1)
    for (ptrdiff_t k2 = 0; k2 < {k2}; ++k2) {{
    for (ptrdiff_t r = 0; r < rows; ++r, band += columns) {{
        const ptrdiff_t z = d * {s0} + k0 * {d0} - {p0};
        const ptrdiff_t y = (h + r) * {s1} + k1 * {d1} - {p1};
        const ptrdiff_t first = w * {s2} + k2 * {d2} - {p2};
        const ptrdiff_t row = ((c * {i0} + z) * {i1} + y) * {i2} + first;
        ptrdiff_t low = first < 0 ? (-first + {s2 - 1}) / {s2} : 0;
        ptrdiff_t high = first < {i2} ? ({i2 - 1} - first) / {s2} + 1 : 0;
        ptrdiff_t j = 0;
        if (z < 0 || z >= {i0} || y < 0 || y >= {i1})
            high = 0;
        low = low < high ? low : high;
        high = high < columns ? high : columns;
        low = low < columns ? low : columns;
        for (; j < low; ++j)
            band[j] = 0;
        for (; j < high; ++j)
            band[j] = x[row + j * {s2}];
        for (; j < columns; ++j)
            band[j] = 0;
    }}
    for (ptrdiff_t j = 0; j < pad; ++j)
        *band++ = 0;
    }}
}}
"""
    return cx.call(name, re.sub(r"\bT\b", type_.name, text))


ALGORITHM = Algorithm(emit, workspace)
