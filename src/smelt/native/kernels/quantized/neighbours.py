"""Convolutions of one channel: neighbouring positions of the kernel make the pairs.

A pair of channels would multiply half of its numbers by 0. The image is copied as two channels
instead, of which the second is the first one moved by a position of the kernel.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.plane import Band, copy_pair

FEWEST_COLUMNS = 3
"""Columns of a kernel that still has several when they are paired."""


def takes(weights: np.ndarray, window: Window) -> bool:
    """One channel a group, on one plane, and several pairs of columns."""
    return weights.shape[2] == 1 and window.flat and window.kernel[2] >= FEWEST_COLUMNS


def paired(window: Window, weights: np.ndarray) -> tuple[Window, np.ndarray]:
    """The same products as a convolution of two channels with half of the columns.

    ``weights`` are ``[group, filter, 1, position]``; 0 stands beside the last of odd columns.
    """
    group, filters, _, _ = weights.shape
    (_, kh, kw), (_, dh, dw) = window.kernel, window.dilations
    rows = weights.reshape(group, filters, kh, kw)
    even = np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, kw % 2)))
    half = even.shape[3] // 2
    two = even.reshape(group, filters, kh * half, 2).transpose(0, 1, 3, 2)
    return replace(window, kernel=(1, kh, half), dilations=(1, dh, 2 * dw)), two


def emit_copy(cx: KernelContext, band: Band, to: str) -> None:
    """Copy the band that output row ``h`` begins, from ``image`` less ``zero``, into ``to``."""
    window, body, copy = band.window, cx.body, copy_pair(cx)
    (_, height, width), (_, down, step) = window.input, window.strides
    beside = window.dilations[2] // 2
    body.line(f"int16_t *row = {to};")
    for top, left in band.phases:
        first, low, high = band.columns(left)
        _, low_beside, high_beside = band.columns(left + beside)
        end = max(low, high_beside)
        with body.loop("r", band.seen):
            body.line(f"const ptrdiff_t y = (h + r) * {down} + ({top - window.begin[1]});")
            with body.block(f"if (y < 0 || y >= {height})"):
                body.line(f"memset(row, 0, {4 * band.pitch});")
            with body.block("else"):
                body.line(f"const ptrdiff_t at = y * {width} + ({first});")
                sizes = f"{low}, {end}, {band.pitch}, {step}"
                body.line(f"{copy}(image, {beside}, at, row, {sizes}, zero);")
                with body.loop("q", min(low, high_beside), str(low_beside)):
                    value = f"image[at + {beside} + q * {step}] - zero"
                    body.line(f"row[2 * q + 1] = (int16_t)({value});")
                with body.loop("q", high, str(end)):
                    body.line(f"row[2 * q] = (int16_t)(image[at + q * {step}] - zero);")
            body.line(f"row += {2 * band.pitch};")
