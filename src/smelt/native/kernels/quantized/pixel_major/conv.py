"""Convolutions of bytes from a band of rows with the channels of a pixel side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.epilogue import epilogue_minus_zero_point
from smelt.native.kernels.quantized.operands import is_zero_computed, zero_text
from smelt.native.kernels.quantized.pixel_major.c_text import header
from smelt.native.kernels.quantized.pixel_major.ending import Ending, declare_ending
from smelt.native.kernels.quantized.pixel_major.weights import (
    TOGETHER,
    block_size,
    blocks_of,
    constant_pairs,
)
from smelt.native.kernels.quantized.tables import int_table
from smelt.native.types import C_TYPES

BAND_BYTES = 6144
"""The approximate bytes of a band, if a row of results does not need more."""


@dataclass(frozen=True)
class Layout:
    """A band of ``rows`` of results of ``wide`` pixels, and the offsets of the scratch space.

    The band comes first, then the weights of a block of filters as 16-bit integers, and the initial
    sum of each filter. The band has ``rows_read`` rows of ``pitch`` pixels. ``weights`` are
    ``[group, filter, run, element]``; run ``r`` begins ``starts[r]`` elements after its pixel.
    """

    window: Window
    weights: np.ndarray
    channels: int
    starts: tuple[int, ...]
    rows: int
    pitch: int

    @staticmethod
    def of(window: Window, weights: np.ndarray) -> Layout:
        """Return the layout for weights ``[group, filter, channel, position]``."""
        group, filters, channels, _ = weights.shape
        if window.pointwise:
            pitch, rows = 1, window.pixels
            most = max(1, BAND_BYTES // (2 * channels))
            rows = -(-rows // -(-rows // most)) if rows else 1
            return Layout(window, weights.swapaxes(2, 3), channels, (0,), rows, pitch)
        (_, height, width), (_, kernel_h, kernel_w) = window.output, window.kernel
        (_, stride_h, stride_w), (_, dilation_h, dilation_w) = window.strides, window.dilations
        pitch = max(width - 1, 0) * stride_w + (kernel_w - 1) * dilation_w + 1
        in_rows = weights.reshape(group, filters, channels, kernel_h, kernel_w)
        in_rows = in_rows.transpose(0, 1, 3, 4, 2)
        if dilation_w == 1:
            runs = in_rows.reshape(group, filters, kernel_h, kernel_w * channels)
            starts = [row * dilation_h * pitch * channels for row in range(kernel_h)]
        else:
            runs = in_rows.reshape(group, filters, kernel_h * kernel_w, channels)
            starts = [
                (row * dilation_h * pitch + column * dilation_w) * channels
                for row in range(kernel_h)
                for column in range(kernel_w)
            ]
        read = BAND_BYTES // (2 * channels * pitch)
        rows = (read - (kernel_h - 1) * dilation_h - 1) // stride_h + 1
        rows = min(max(rows, 1), max(height, 1))
        rows = -(-height // -(-height // rows)) if height else 1
        return Layout(window, runs, channels, tuple(starts), rows, pitch)

    @property
    def height(self) -> int:
        """The rows of results; each pixel of a pointwise convolution is a row."""
        return self.window.pixels if self.window.pointwise else self.window.output[1]

    @property
    def rows_read(self) -> int:
        """The rows of a band."""
        stride, dilation, kernel = (
            each[1] for each in (self.window.strides, self.window.dilations, self.window.kernel)
        )
        return (
            self.rows
            if self.window.pointwise
            else (self.rows - 1) * stride + (kernel - 1) * dilation + 1
        )

    @property
    def pairs(self) -> int:
        """The pairs of a run; the last one may be padded."""
        return -(-int(self.weights.shape[3]) // 2)

    @property
    def is_widened(self) -> bool:
        """True if weights are bytes in memory."""
        return bool(self.weights.dtype == np.int8)

    @property
    def weights_offset(self) -> int:
        """The offset in bytes of the widened weights; a padded run reads one element more."""
        return -(-(2 * self.rows_read * self.pitch * self.channels + 2) // 4) * 4

    @property
    def sums_offset(self) -> int:
        """The offset in bytes of the initial sums."""
        most = min(TOGETHER, int(self.weights.shape[1]))
        block = block_size(len(self.starts), self.pairs, TOGETHER if most == TOGETHER else 1)
        return self.weights_offset + (2 * block if self.is_widened else 0)


def scratch_bytes(instance: Instance, window: Window, weights: np.ndarray) -> int:
    """Return the size of the scratch space; it has initial sums if the zero point is an input."""
    layout, (group, filters, *_) = Layout.of(window, weights), weights.shape
    return layout.sums_offset + (4 * group * filters if is_zero_computed(instance) else 0)


def emit(cx: KernelContext, window: Window, weights: np.ndarray) -> None:
    """Write loops over bands, which copy the band and compute four filters at a time.

    ```
    for (ptrdiff_t h = 0; h < 32; h += 5) {
        ... copy the band
        for (ptrdiff_t o = 0; o < 16; o += 4) {
            ... widen the weights
            for (ptrdiff_t r = 0; r < rows; ++r)
                row_by_four_byte_int8(band + r * 544, 32, 16, starts, 3, 24, ...);
    ```
    """
    layout, body = Layout.of(window, weights), cx.body
    group, filters, _, _ = layout.weights.shape
    source, output = cx.input(0), cx.output()
    packed = constant_pairs(cx, layout.weights)
    scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
    sums = layout.weights.astype(np.int64)
    start = f"{scratch} + {layout.sums_offset // 2}"
    epilogue = epilogue_minus_zero_point(cx, sums.sum((2, 3)).reshape(-1), 0, start)
    ending = declare_ending(cx, epilogue, np.abs(sums).sum((2, 3)).reshape(-1))
    starts = int_table(cx, "starts", list(layout.starts))
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
            for part in blocks_of(filters):
                with filter_loop("o", part.end, part.first, part.length):
                    weights_at = _emit_weights(cx, layout, packed, scratch, part.length)
                    _emit_rows(cx, layout, ending, (scratch, weights_at, starts), part.length)


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


def _emit_weights(
    cx: KernelContext, layout: Layout, packed: str, scratch: str, filters: int
) -> str:
    """Write the widening of the weights of a block; return their address, as C."""
    group_filters = int(layout.weights.shape[1])
    runs = len(layout.starts)
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
    kind = "four" if filters == TOGETHER else "one"
    header(cx, f"row_{kind}", NAME=ending.name, RESULT=ending.result)
    group_filters = int(layout.weights.shape[1])
    ends = f"{starts}, {len(layout.starts)}, {layout.pairs}, {weights}, &end"
    channel = f"g * {group_filters} + o"
    function = f"row_by_{kind}_{ending.name}"
    if window.pointwise:
        to = f"out + o * {window.pixels} + h, {window.pixels}, 1"
        body.line(f"{function}({band}, rows, {channels}, {ends}, {channel}, {to});")
        return
    (_, _, width), (_, stride_h, stride_w) = window.output, window.strides
    row = f"{band} + r * {stride_h * layout.pitch * channels}"
    with body.loop("r", "rows"):
        to = f"out + o * {window.pixels} + (h + r) * {width}, {window.pixels}, 1"
        body.line(f"{function}({row}, {width}, {stride_w * channels}, {ends}, {channel}, {to});")
