"""Find the kernel taps that meet an element of the image, not only padding, along one axis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaddedAxis:
    """One axis of a convolution: ``size`` elements of the image, ``results`` windows ``stride``
    apart, ``taps`` of the kernel ``dilation`` apart, and the padding at the ``begin``."""

    size: int
    results: int
    stride: int
    taps: int
    dilation: int
    begin: int

    def meets(self, tap: int) -> bool:
        """True if ``tap`` meets an element of the image for any result."""
        first = tap * self.dilation - self.begin
        places = range(first, first + self.results * self.stride, self.stride)
        before = len(range(first, min(0, places.stop), self.stride))
        return before < len(places) and places[before] < self.size

    def living(self) -> range:
        """Return the range from the first tap that meets an element to the last; empty if none
        does."""
        alive = [tap for tap in range(self.taps) if self.meets(tap)]
        return range(alive[0], alive[-1] + 1) if alive else range(0)
