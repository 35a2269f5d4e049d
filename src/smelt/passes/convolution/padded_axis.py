"""Find the kernel taps that meet an element of the image, not only padding, along one axis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaddedAxis:
    """One axis of a convolution.

    The image has ``size`` elements and ``begin`` elements of padding before it. The kernel has
    ``taps``, ``dilation`` apart. The result has ``results`` windows, ``stride`` apart.
    """

    size: int
    results: int
    stride: int
    taps: int
    dilation: int
    begin: int

    def meets(self, tap: int) -> bool:
        """True if ``tap`` meets an element of the image for any result."""
        first = tap * self.dilation - self.begin
        positions = range(first, first + self.results * self.stride, self.stride)
        # The tap meets positions in ascending order: those before the image, then the others.
        before_image = len(range(first, min(0, positions.stop), self.stride))
        return before_image < len(positions) and positions[before_image] < self.size

    def useful_taps(self) -> range:
        """Return the range from the first tap that meets an element to the last; empty without such
        a tap."""
        useful = [tap for tap in range(self.taps) if self.meets(tap)]
        return range(useful[0], useful[-1] + 1) if useful else range(0)
