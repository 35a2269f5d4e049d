"""Convolutions of one byte channel: int8 dot products of four neighboring kernel columns.

A group of four channels would be mostly padding. Instead, the image is copied as four channels,
each shifted by one kernel column from the previous one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.band_copy import Band, copy_quads


def supports(weights: np.ndarray, window: Window) -> bool:
    """True if each group has one channel, and the convolution is 2-D with
    several kernel columns."""
    return weights.shape[2] == 1 and window.flat and window.kernel[2] > 1


def in_quads(window: Window, weights: np.ndarray) -> tuple[Window, np.ndarray]:
    """Return the same convolution with four channels and a quarter of the kernel columns.

    ``weights`` are ``[group, filter, 1, position]``; the last columns are padded with zeros.
    """
    group, filters, _, _ = weights.shape
    (_, kernel_h, kernel_w), (_, dilation_h, dilation_w) = window.kernel, window.dilations
    rows = weights.reshape(group, filters, kernel_h, kernel_w)
    padded = np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, -kernel_w % 4)))
    kernel_quads = padded.shape[3] // 4
    of_four_channels = padded.reshape(group, filters, kernel_h * kernel_quads, 4).transpose(
        0, 1, 3, 2
    )
    return replace(
        window, kernel=(1, kernel_h, kernel_quads), dilations=(1, dilation_h, 4 * dilation_w)
    ), of_four_channels


def row_bytes(band: Band) -> int:
    """Return the bytes of a padded row of the image, from the first byte that is read."""
    (_, _, stride_w), (_, _, dilation_w) = band.window.strides, band.window.dilations
    last = (
        max(left for _, left in band.phases) + (band.pitch - 1) * stride_w + 3 * (dilation_w // 4)
    )
    return last + 1


def emit_copy(cx: KernelContext, band: Band, to: str, line: str, flip: int) -> None:
    """Write the copy from ``image`` into ``to`` of the band that begins at output row ``h``.

    ``line`` is a buffer for one padded row of the image.

    ```
    memcpy(line + 2, image + y * 14, 14);
    const unsigned char *const rows[] = { line + 0, line + 1, line + 2, line + 3 };
    copy_quads(rows, 18, 1, 0, row);
    ```
    """
    window, body, copy = band.window, cx.body, copy_quads(cx)
    (_, height, width), (_, stride_h, stride_w) = window.input, window.strides
    shift, size, begin = window.dilations[2] // 4, row_bytes(band), window.begin[2]
    low, high = min(begin, size), min(begin + width, size)
    body.line(f"unsigned char *row = {to};")
    body.line(f"memset({line}, pad ^ {flip}, {size});")
    for top, left in band.phases:
        with body.loop("r", band.rows_read):
            body.line(f"const ptrdiff_t y = (h + r) * {stride_h} + ({top - window.begin[1]});")
            with body.block(f"if (y < 0 || y >= {height})"):
                body.line(f"memset(row, pad, {4 * band.pitch});")
            with body.block("else"):
                if high > low:
                    body.line(f"memcpy({line} + {low}, image + y * {width}, {high - low});")
                addresses = (f"{line} + {left + i * shift}" for i in range(4))
                body.line(f"const unsigned char *const rows[] = {{ {', '.join(addresses)} }};")
                body.line(f"{copy}(rows, {band.pitch}, {stride_w}, {flip}, row);")
            body.line(f"row += {4 * band.pitch};")
