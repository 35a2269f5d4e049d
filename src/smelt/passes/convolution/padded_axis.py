"""Which taps of a kernel meet an element of the image along one axis, and which only padding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaddedAxis:
    """``size`` elements of the image and ``results`` a ``stride`` apart; of the kernel, ``taps`` a
    ``dilation`` apart, and how much padding is at the ``begin``."""

    size: int
    results: int
    stride: int
    taps: int
    dilation: int
    begin: int

    def meets(self, tap: int) -> bool:
        """Whether ``tap`` meets an element for any result."""
        first = tap * self.dilation - self.begin
        places = range(first, first + self.results * self.stride, self.stride)
        before = len(range(first, min(0, places.stop), self.stride))
        return before < len(places) and places[before] < self.size

    def living(self) -> range:
        """From the first tap that meets an element to the last; empty if none does."""
        alive = [tap for tap in range(self.taps) if self.meets(tap)]
        return range(alive[0], alive[-1] + 1) if alive else range(0)
