"""The layout of the scratch space of a convolution of bytes: a band, then what is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.quantized.pixel_major.weights import TOGETHER, block_size

BAND_BYTES = 8192
"""The approximate bytes of a band, if a row of results does not need more."""


MOST_GATHERED = 128
"""The most elements of a pixel that are gathered."""


@dataclass(frozen=True)
class Layout:
    """A band of ``rows`` of results of ``wide`` pixels, and the offsets of the scratch space.

    The band comes first, then the weights of a block of filters as 16-bit integers, and the initial
    sum of each filter. The band has ``rows_read`` rows of ``pitch`` pixels. ``weights`` are
    ``[group, filter, run, element]``; run ``r`` begins ``starts[r]`` elements after its pixel. If
    ``is_gathered``, the runs of each pixel are first copied one after the other, behind the band.
    """

    window: Window
    weights: np.ndarray
    channels: int
    starts: tuple[int, ...]
    rows: int
    pitch: int
    is_gathered: bool = False

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
        is_gathered = _pays_to_gather(runs)
        row_bytes = 2 * channels * pitch
        more = 2 * width * _whole(runs[0, 0].size) if is_gathered else 0
        left = BAND_BYTES + (stride_h - (kernel_h - 1) * dilation_h - 1) * row_bytes
        rows = min(max(1, left // (stride_h * row_bytes + more)), max(height, 1))
        rows = -(-height // -(-height // rows)) if height else 1
        return Layout(window, runs, channels, tuple(starts), rows, pitch, is_gathered)

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
    def runs(self) -> np.ndarray:
        """The weights by the runs that a micro-kernel reads: gathered ones are one run."""
        if not self.is_gathered:
            return self.weights
        return self.weights.reshape(*self.weights.shape[:2], 1, -1)

    @property
    def pairs(self) -> int:
        """The pairs of a run that a micro-kernel reads; the last one may be padded."""
        return _whole(self.runs.shape[3]) // 2

    @property
    def is_widened(self) -> bool:
        """True if weights are bytes in memory."""
        return bool(self.weights.dtype == np.int8)

    @property
    def gathered_offset(self) -> int:
        """The offset in bytes of the gathered runs; a padded run reads one element more."""
        return -(-(2 * self.rows_read * self.pitch * self.channels + 2) // 4) * 4

    @property
    def weights_offset(self) -> int:
        """The offset in bytes of the widened weights."""
        gathered = 4 * self.rows * self.window.output[2] * self.pairs if self.is_gathered else 0
        return self.gathered_offset + gathered

    @property
    def sums_offset(self) -> int:
        """The offset in bytes of the initial sums."""
        together = TOGETHER if self.weights.shape[1] >= TOGETHER else 1
        block = block_size(int(self.runs.shape[2]), self.pairs, together)
        return self.weights_offset + (2 * block if self.is_widened else 0)


def _whole(elements: int) -> int:
    """Return ``elements`` in whole pairs."""
    return elements + elements % 2


def _pays_to_gather(runs: np.ndarray) -> bool:
    """True if gathering the runs of a pixel costs less than starting each run in a micro-kernel.

    Instructions of a pixel on a Cortex-M4: 6 to copy an element, 10 to copy a run, 14 to start a
    run for four filters.
    """
    filters, count, length = (int(size) for size in runs.shape[1:])
    return count * length <= MOST_GATHERED and 6 * length + 10 < 14 * filters / TOGETHER
