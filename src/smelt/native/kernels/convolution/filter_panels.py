"""Panels of filters, which are the columns of micro-kernels, and the source of their pixels."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import Epilogue
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES

PANEL = 2 * MOST_LANES


@dataclass(frozen=True, slots=True)
class Source:
    """Where pixels are read: a pointer and strides in elements.

    ``plane`` is the distance between channels, ``pitch`` between image rows, ``down`` between the
    inputs of two output rows, ``step`` between those of two pixels. ``block`` channels are computed
    at a time, with partial sums in ``partial_sums``; 0 for all at once.
    """

    pointer: str
    plane: int
    pitch: int
    down: int
    step: int
    block: int = 0
    partial_sums: str = ""


@dataclass(frozen=True, slots=True)
class Filters:
    """Packed weights, packed bias ("" without), and epilogue.

    ``skipped``: kernel positions in the padding are skipped.
    """

    packed: str
    bias: str
    epilogue: Epilogue
    skipped: bool


def panels(filters: int) -> list[tuple[int, int, int]]:
    """Return the panels as ``(first filter, width, count)``.

    Whole panels come first, then at most one of half the width and one of a quarter. More than
    three quarters left over are one more whole panel.
    """
    half, quarter = PANEL // 2, PANEL // 4
    full_panels, remaining = divmod(filters, PANEL)
    if remaining > half + quarter:
        full_panels, remaining = full_panels + 1, 0
    counts = (
        full_panels,
        int(remaining > quarter),
        int(0 < remaining <= quarter or remaining > half),
    )
    panels_, first = [], 0
    for width, count in zip((PANEL, half, quarter), counts, strict=True):
        if count:
            panels_.append((first, width, count))
        first += width * count
    return panels_


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of ``width`` filters from ``o`` on; the last panel of this width ends at filter
    ``end``.
    """

    window: Window
    source: Source
    weights: Filters
    width: int
    end: int

    def elements(self, channels: int) -> int:
        """Return the number of weights of the panel."""
        return self.width * channels * self.window.kernel[1] * self.window.kernel[2]

    def filter_count(self, cx: KernelContext) -> str:
        """Return the number of its filters as C; the last panel may have fewer than ``width``."""
        filters, width = channels_of(cx)[1], self.width
        if filters % width == 0:
            return str(width)
        return f"({filters} - o < {width} ? {filters} - o : {width})"

    def bias(self, cx: KernelContext) -> str:
        """Return the bias of its filters as C, empty without one."""
        total = sum(width * count for _, width, count in panels(channels_of(cx)[1]))
        return f"{self.weights.bias} + g * {total} + o" if self.weights.bias else ""
