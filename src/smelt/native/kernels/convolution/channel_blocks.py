"""Convolutions of many channels, a block of them at a time: their sums are held in between.

A panel of filters and the band of pixels that it is multiplied with come from far away again for
each tile where they are larger together than what lies near the processor. Those of a block of
channels stay there for all tiles of the band.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.instance import Instance

NEAR = 1 << 18
"""Elements of the band, a panel and the next one, which is fetched meanwhile, that stay near."""

BLOCK = 1 << 15
"""Weights of a panel in a block, about."""

HELD = 1 << 14
"""Sums that are held at most: they are read and written once a block."""


@dataclass(frozen=True, slots=True)
class Channels:
    """``count`` channels from ``first`` on, as C. Where they are part of all, sums are ``held``, a
    row of the panel's filters a pixel, and finished with the last ones."""

    first: str
    count: str
    held: str = ""


def block_of(instance: Instance, window: Window, panel: int, band: int, pixels: int) -> int:
    """Channels of a block of ``panel`` filters by a ``band`` of so many elements; 0 for all."""
    channels = channels_of(instance)[0]
    terms = window.kernel[1] * window.kernel[2]
    near = band + 2 * panel * channels * terms <= NEAR
    block = max(1, BLOCK // (panel * terms))
    return 0 if near or block >= channels or panel * pixels > HELD else block
