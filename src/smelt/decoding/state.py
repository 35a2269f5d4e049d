"""What a decoder knows of the tokens so far: caches, mask and positions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray

ROWS_FIRST = (2, 0, 1, 3)
"""The permutation of B,H,S,D to S,B,H,D, the order of a cache that grows in place."""


@dataclass
class State:
    """The sequences so far, ``length`` tokens each.

    ``mask`` is bool[B, length], False for padding before a shorter prompt. ``caches`` has the
    array of each past input by name. ``buffers`` has room for later rows of those caches that only
    grow: [capacity, B, H, D], of which the first ``length`` rows are in use.
    """

    capacity: int
    mask: Array
    length: int = 0
    caches: dict[str, Array] = field(default_factory=dict)
    buffers: dict[str, Array] = field(default_factory=dict)

    def past(self, name: str) -> Array | None:
        """Return the past of the input ``name`` without a copy; None before the first call."""
        buffer = self.buffers.get(name)
        return self.caches.get(name) if buffer is None else buffer[: self.length]

    def append(self, name: str, rows: Array) -> None:
        """Store ``rows``, [S, B, H, D], after those of the cache ``name``."""
        buffer = self.buffers.get(name)
        end = self.length + len(rows)
        if buffer is None or end > len(buffer):
            larger = np.empty((max(end, self.capacity), *rows.shape[1:]), rows.dtype)
            if buffer is not None:
                larger[: self.length] = buffer[: self.length]
            self.buffers[name] = buffer = larger
        buffer[self.length : end] = rows

    def positions(self, count: int) -> Array:
        """Return int64[B, count], the positions of the next ``count`` tokens without padding."""
        places = np.cumsum(self.mask[:, : self.length + count], axis=1) - 1
        positions: Array = np.maximum(places[:, self.length :], 0)
        return positions
