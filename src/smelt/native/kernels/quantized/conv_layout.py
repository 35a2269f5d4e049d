"""Where a convolution of bytes keeps its operands in scratch space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.quantized import neighbours
from smelt.native.kernels.quantized.finish import SPARE
from smelt.native.kernels.quantized.held import Excess, excess_of
from smelt.native.kernels.quantized.plane import Band, band_of
from smelt.native.kernels.quantized.quads import LEAD, MOST_ROWS
from smelt.native.kernels.quantized.tile import ROWS


@dataclass(frozen=True)
class Layout:
    """What is computed, and where the scratch space holds what, in bytes.

    The plane comes first, then the weights of a tile as 16 bits, a row of the image with its
    padding, and what the sums of each filter start from.
    """

    band: Band
    weights: np.ndarray
    in_columns: bool
    excess: Excess | None

    @staticmethod
    def of(window: Window, weights: np.ndarray) -> Layout:
        """Of a window and ``[group, filter, channel, position]``."""
        in_columns = neighbours.takes(weights, window)
        if in_columns:
            window, weights = neighbours.in_quads(window, weights)
        band, (_, _, channels, positions) = band_of(window), weights.shape
        filters = in_quads(weights).reshape(-1, positions * -(-channels // 4), 4)
        is_small = weights.dtype == np.int8
        excess = excess_of(filters, band.rows * band.wide) if is_small else None
        return Layout(band, weights, in_columns, excess)

    @property
    def quads(self) -> int:
        """Of channels."""
        return -(-int(self.weights.shape[2]) // 4)

    @property
    def depth(self) -> int:
        """Elements of a filter."""
        return 4 * self.quads * int(self.weights.shape[3])

    @property
    def block(self) -> int:
        """Where the weights of a tile are."""
        return LEAD + self.band.quad_bytes(self.quads)

    @property
    def line(self) -> int:
        """Where a row of the image is."""
        wide = 2 * (ROWS * self.depth + 2 * MOST_ROWS)
        return self.block + (wide if self.weights.dtype == np.int8 else 0)

    @property
    def steps(self) -> int:
        """Where it says where each quad of a filter lies in the plane."""
        return self.line + (-(-neighbours.row_bytes(self.band) // 4) * 4 if self.in_columns else 0)

    @property
    def start(self) -> int:
        """Where the starts of sums are."""
        return self.steps + (self.depth if self.excess else 0)

    @property
    def bytes(self) -> int:
        """All of them."""
        group, filters = (int(size) for size in self.weights.shape[:2])
        return self.start + 4 * (group * filters + SPARE)


def in_quads(weights: np.ndarray) -> np.ndarray:
    """``[group, filter, quad of channels, position, 4]``."""
    group, filters, channels, positions = weights.shape
    even = np.pad(weights, ((0, 0), (0, 0), (0, -channels % 4), (0, 0)))
    return even.reshape(group, filters, -(-channels // 4), 4, positions).swapaxes(3, 4)
