"""The memory of a decoder in C: caches, inputs, logits and arena, at fixed offsets."""

from __future__ import annotations

from dataclasses import dataclass, field

HEAD_BYTES = 512
"""The bytes in front of all regions, which hold the struct of the decoder."""

LINE = 64
"""Regions begin at a cache line, or at the alignment of the arena if that is more."""


@dataclass(frozen=True)
class Fill:
    """A region of ``count`` equal numbers of a C type, which are written once."""

    offset: int
    c_type: str
    value: int
    count: int


@dataclass
class State:
    """The regions of the memory, by name; ``end`` is the number of its bytes.

    ``fills`` are written once; ``zeros`` are offsets and sizes of bytes that are 0 before the first
    token.
    """

    alignment: int
    offsets: dict[str, int] = field(default_factory=dict)
    fills: dict[str, Fill] = field(default_factory=dict)
    zeros: dict[str, tuple[int, int]] = field(default_factory=dict)
    end: int = 0

    def __post_init__(self) -> None:
        """Begin behind the struct of the decoder."""
        self.alignment = max(self.alignment, LINE)
        self.end = -(-HEAD_BYTES // self.alignment) * self.alignment

    def region(self, name: str, nbytes: int) -> int:
        """Return the offset of the region ``name``, which is new unless the name is known."""
        if name not in self.offsets:
            self.offsets[name] = self.end
            self.end += -(-max(nbytes, 1) // self.alignment) * self.alignment
        return self.offsets[name]
