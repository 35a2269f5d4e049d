"""The layout of the scratch space of a convolution of bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.quantized import columns_as_channels
from smelt.native.kernels.quantized.band_copy import Band, band_of
from smelt.native.kernels.quantized.conv_micro_kernel import ROWS
from smelt.native.kernels.quantized.dot4 import LEAD, MOST_ROWS
from smelt.native.kernels.quantized.epilogue import SPARE
from smelt.native.kernels.quantized.pairwise_safe import Excess, excess_of


@dataclass(frozen=True)
class Layout:
    """The band and weights of a convolution of bytes, and the offset of each part of its scratch
    space.

    The plane comes first, then the weights of a micro-kernel as 16-bit integers, a padded row of
    the image, the table ``steps``, and the initial sum of each filter. Offsets are in bytes.
    """

    band: Band
    weights: np.ndarray
    in_columns: bool
    excess: Excess | None

    @staticmethod
    def of(window: Window, weights: np.ndarray) -> Layout:
        """Return the layout for a window and weights ``[group, filter, channel, position]``."""
        in_columns = columns_as_channels.supports(weights, window)
        if in_columns:
            window, weights = columns_as_channels.in_quads(window, weights)
        band, (_, _, channels, positions) = band_of(window), weights.shape
        filters = in_quads(weights).reshape(-1, positions * -(-channels // 4), 4)
        is_small = weights.dtype == np.int8
        excess = excess_of(filters, band.rows * band.wide) if is_small else None
        return Layout(band, weights, in_columns, excess)

    @property
    def quads(self) -> int:
        """The number of groups of four channels; the last group may be padded."""
        return -(-int(self.weights.shape[2]) // 4)

    @property
    def depth(self) -> int:
        """The number of elements of a filter, its channels padded to whole groups of four."""
        return 4 * self.quads * int(self.weights.shape[3])

    @property
    def weights_offset(self) -> int:
        """The offset of the weights of a micro-kernel."""
        return LEAD + self.band.quad_bytes(self.quads)

    @property
    def row_offset(self) -> int:
        """The offset of the buffer for one padded row, after the weights as 16-bit integers."""
        widened_bytes = 2 * (ROWS * self.depth + 2 * MOST_ROWS)
        return self.weights_offset + (widened_bytes if self.weights.dtype == np.int8 else 0)

    @property
    def steps_offset(self) -> int:
        """The offset of the table ``steps``, after the buffer for one padded row.

        The table has where in the plane each group of four elements of a filter is read.
        """
        return self.row_offset + (
            -(-columns_as_channels.row_bytes(self.band) // 4) * 4 if self.in_columns else 0
        )

    @property
    def sums_offset(self) -> int:
        """The offset of the initial sums."""
        return self.steps_offset + (self.depth if self.excess else 0)

    @property
    def bytes(self) -> int:
        """The size of the scratch space in bytes."""
        group, filters = (int(size) for size in self.weights.shape[:2])
        return self.sums_offset + 4 * (group * filters + SPARE)


def in_quads(weights: np.ndarray) -> np.ndarray:
    """Return weights as ``[group, filter, channel // 4, position, 4]``, padded with zeros."""
    group, filters, channels, positions = weights.shape
    padded = np.pad(weights, ((0, 0), (0, 0), (0, -channels % 4), (0, 0)))
    return padded.reshape(group, filters, -(-channels // 4), 4, positions).swapaxes(3, 4)
