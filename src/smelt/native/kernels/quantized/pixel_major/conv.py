"""Convolutions of bytes from a band of rows with the channels of a pixel side by side."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.epilogue import epilogue_minus_zero_point
from smelt.native.kernels.quantized.operands import is_zero_computed, zero_text
from smelt.native.kernels.quantized.pixel_major.c_text import header
from smelt.native.kernels.quantized.pixel_major.ending import Ending, declare_ending, row_function
from smelt.native.kernels.quantized.pixel_major.layout import Layout
from smelt.native.kernels.quantized.pixel_major.weights import (
    TOGETHER,
    block_size,
    blocks_of,
    constant_pairs,
)
from smelt.native.kernels.quantized.tables import int_table
from smelt.native.types import C_TYPES


def scratch_bytes(instance: Instance, window: Window, weights: np.ndarray) -> int:
    """Return the size of the scratch space; it has initial sums if the zero point is an input."""
    layout, (group, filters, *_) = Layout.of(window, weights), weights.shape
    return layout.sums_offset + (4 * group * filters if is_zero_computed(instance) else 0)


def emit(cx: KernelContext, window: Window, weights: np.ndarray) -> None:
    """Write loops over bands, which copy the band and compute four filters at a time.

    ```
    for (ptrdiff_t h = 0; h < 32; h += 5) {
        ... copy the band, gather the runs of each pixel where that pays
        for (ptrdiff_t o = 0; o < 16; o += 4) {
            ... widen the weights
            for (ptrdiff_t r = 0; r < rows; ++r)
                row_by_four_byte_int8_0(band + r * 544, 32, 16, starts, 3, 24, ...);
    ```
    """
    layout, body = Layout.of(window, weights), cx.body
    group, filters, _, _ = layout.weights.shape
    source, output = cx.input(0), cx.output()
    packed = constant_pairs(cx, layout.runs)
    scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
    sums = layout.weights.astype(np.int64)
    start = f"{scratch} + {layout.sums_offset // 2}"
    epilogue = epilogue_minus_zero_point(cx, sums.sum((2, 3)).reshape(-1), 0, start)
    ending = declare_ending(cx, epilogue, np.abs(sums).sum((2, 3)).reshape(-1))
    starts = int_table(cx, "starts", layout.starts)
    has_enough_bands = layout.height >= 2 * layout.rows * body.parts
    band_loop, filter_loop = body.loop, body.shared_loop
    if has_enough_bands:  # then threads share the bands, otherwise the filters
        band_loop, filter_loop = filter_loop, band_loop
    with body.loops(("n", "g"), (source.shape[0], group)):
        first = f"(n * {group} + g) * {layout.channels * window.plane}"
        body.line(f"const {source.type.name} *image = {source.name} + {first};")
        at = f"(n * {group} + g) * {filters * window.pixels}"
        body.line(f"{output.type.name} *out = {output.name} + {at};")
        with band_loop("h", layout.height, step=layout.rows):
            body.line(f"const ptrdiff_t left = {layout.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {layout.rows} ? left : {layout.rows};")
            emit_copy(cx, layout, scratch)
            pixels = _emit_gathering(cx, layout, scratch, starts)
            for part in blocks_of(filters):
                with filter_loop("o", part.end, part.first, part.length):
                    weights_at = _emit_weights(cx, layout, packed, scratch, part.length)
                    _emit_rows(cx, layout, ending, (pixels, weights_at, starts), part.length)


def emit_copy(cx: KernelContext, layout: Layout, band: str) -> None:
    """Write the copy of the band that begins at row ``h`` of results, with its padding."""
    window, body, channels = layout.window, cx.body, layout.channels
    byte = "int8" if cx.input(0).type.signed else "uint8"
    header(cx, "copy", BYTE=byte)
    copy = f"copy_pixels_{byte}"
    if window.pointwise:
        body.line(f"{copy}(image + h, {channels}, {window.plane}, rows, {band});")
        return
    header(cx, "fill")
    (_, height, width), (_, stride, _) = window.input, window.strides
    (_, kernel, _), (_, dilation, _) = window.kernel, window.dilations
    (_, top, pad), row = window.begin, layout.pitch * channels
    body.line(f"const int16_t pad = (int16_t){zero_text(cx)};")
    body.line(f"const ptrdiff_t read = (rows - 1) * {stride} + {(kernel - 1) * dilation + 1};")
    inside = max(0, min(width, layout.pitch - pad))
    pad = min(pad, layout.pitch)
    after = layout.pitch - pad - inside
    with body.loop("r", "read"):
        body.line(f"const ptrdiff_t y = h * {stride} + r - {top};")
        body.line(f"int16_t *to = {band} + r * {row};")
        with body.block(f"if (y < 0 || y >= {height})"):
            body.line(f"fill_elements(to, {row}, pad);")
            body.line("continue;")
        if pad:
            body.line(f"fill_elements(to, {pad * channels}, pad);")
        if inside:
            from_ = f"image + y * {width}, {channels}, {window.plane}, {inside}"
            body.line(f"{copy}({from_}, to + {pad * channels});")
        if after:
            body.line(f"fill_elements(to + {(pad + inside) * channels}, {after * channels}, pad);")


def _emit_gathering(cx: KernelContext, layout: Layout, band: str, starts: str) -> str:
    """Write the copy of the runs of each pixel of the band; return what is multiplied, as C."""
    if not layout.is_gathered:
        return band
    header(cx, "gather")
    window, channels, body = layout.window, layout.channels, cx.body
    (_, _, width), (_, stride_h, stride_w) = window.output, window.strides
    _, _, count, length = layout.weights.shape
    body.line(f"int16_t *gathered = {band} + {layout.gathered_offset // 2};")
    with body.loop("r", "rows"):
        row = f"{band} + r * {stride_h * layout.pitch * channels}, {width}, {stride_w * channels}"
        to = f"gathered + r * {2 * width * layout.pairs}"
        body.line(f"gather_runs({row}, {starts}, {count}, {length}, {to});")
    return "gathered"


def _emit_weights(
    cx: KernelContext, layout: Layout, packed: str, scratch: str, filters: int
) -> str:
    """Write the widening of the weights of a block; return their address, as C."""
    group_filters = int(layout.weights.shape[1])
    runs = int(layout.runs.shape[2])
    whole = group_filters // TOGETHER
    four, one = (block_size(runs, layout.pairs, count) for count in (TOGETHER, 1))
    per_group = whole * four + group_filters % TOGETHER * one
    at = f"{packed} + g * {per_group} + "
    if filters == TOGETHER:
        at += f"o * {four // TOGETHER}" if four % TOGETHER == 0 else f"o / {TOGETHER} * {four}"
    else:
        at += f"{whole * four} + (o - {whole * TOGETHER}) * {one}"
    if not layout.is_widened:
        return at
    header(cx, "widen")
    body = cx.body
    body.line(f"int16_t *w = {scratch} + {layout.weights_offset // 2};")
    body.line(f"widen_pairs({at}, {four if filters == TOGETHER else one}, w);")
    return "w"


def _emit_rows(
    cx: KernelContext, layout: Layout, ending: Ending, names: tuple[str, str, str], filters: int
) -> None:
    """Write the calls that compute a block of ``filters`` at all pixels of the band."""
    body, window, channels = cx.body, layout.window, layout.channels
    band, weights, starts = names
    function = row_function(cx, ending, filters, layout.pairs)
    group_filters = int(layout.weights.shape[1])
    ends = f"{layout.pairs}, {weights}, &end, g * {group_filters} + o, out + o * {window.pixels}"
    (_, _, width), (_, stride_h, stride_w) = window.output, window.strides
    if window.pointwise or layout.is_gathered:
        at, step = ("h", channels) if window.pointwise else (f"h * {width}", 2 * layout.pairs)
        n = "rows" if window.pointwise else f"rows * {width}"
        first = int_table(cx, "starts", (0,))
        body.line(
            f"{function}({band}, {n}, {step}, {first}, 1, {ends} + {at}, {window.pixels}, 1);"
        )
        return
    row = f"{band} + r * {stride_h * layout.pitch * channels}, {width}, {stride_w * channels}"
    with body.loop("r", "rows"):
        to = f"{ends} + (h + r) * {width}, {window.pixels}, 1"
        body.line(f"{function}({row}, {starts}, {len(layout.starts)}, {to});")
