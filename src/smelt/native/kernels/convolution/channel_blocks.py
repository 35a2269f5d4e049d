"""Convolutions of many channels, computed by blocks of channels with partial sums in memory.

If a panel of filters and its band of pixels exceed the cache together, each tile reads both from
memory again. A block of their channels stays in cache for all tiles of the band.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.instance import Instance

NEAR = 1 << 18
"""The elements that stay in cache: the band, a panel and the next panel, which is prefetched."""

BLOCK = 1 << 15
"""The approximate number of a panel's weights in a block."""

MOST_PARTIAL_SUMS = 1 << 14
"""The most partial sums, which are read and written once per block."""


@dataclass(frozen=True, slots=True)
class Channels:
    """``count`` channels from ``first`` on, as C.

    If they are a block, ``partial_sums`` is the C array of the sums of the previous blocks, one row
    of the panel's filters per pixel. The last block applies the epilogue.
    """

    first: str
    count: str
    partial_sums: str = ""


def block_of(instance: Instance, window: Window, panel: int, band: int, pixels: int) -> int:
    """Return the number of channels in a block; 0 if all channels are computed at once.

    ``panel`` is the number of filters in a panel; ``band`` the elements and ``pixels`` the output
    pixels of a band.
    """
    channels = channels_of(instance)[0]
    positions = window.kernel[1] * window.kernel[2]
    fits_cache = band + 2 * panel * channels * positions <= NEAR
    block = max(1, BLOCK // (panel * positions))
    return 0 if fits_cache or block >= channels or panel * pixels > MOST_PARTIAL_SUMS else block
