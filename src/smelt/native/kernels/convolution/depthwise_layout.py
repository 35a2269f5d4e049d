"""The padded plane of a depthwise convolution, split by stride into phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.vector import MOST_LANES
from smelt.program.run_sizes import highest, larger, smaller

BAND = 2048
"""The approximate number of results that are buffered before they are stored."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The padded plane, split into ``phases`` of ``rows`` rows that are ``pitch`` elements apart.

    Phase ``(y, x)`` holds the padded plane's elements ``[y::stride_h, x::stride_w]``. ``band``
    output rows are computed at once.
    """

    phases: tuple[tuple[int, int], ...]
    rows: int
    pitch: int
    band: int

    @property
    def phase(self) -> int:
        """The elements of a phase: ``rows`` rows that are ``pitch`` elements apart."""
        return self.rows * self.pitch

    @property
    def results(self) -> int:
        """The most results of a band, plus room for vectors beyond its end."""
        band = highest(self.band * self.pitch)
        return min(band, max(BAND, highest(self.pitch))) + 2 * MOST_LANES


def layout_of(window: Window) -> Layout:
    """Return the layout that has just the phases that some kernel position reads."""
    (_, kernel_h, kernel_w), (_, stride_h, stride_w), (_, dilation_h, dilation_w) = (
        window.kernel,
        window.strides,
        window.dilations,
    )
    phases = {
        (row * dilation_h % stride_h, column * dilation_w % stride_w)
        for row in range(kernel_h)
        for column in range(kernel_w)
    }
    rows = window.output[1] + (kernel_h - 1) * dilation_h // stride_h
    pitch = window.output[2] + (kernel_w - 1) * dilation_w // stride_w
    band = cast(int, larger(1, smaller(window.output[1], BAND // larger(1, pitch))))
    return Layout(tuple(sorted(phases)), rows, pitch, band)
