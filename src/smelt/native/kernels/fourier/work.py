"""The work of one DFT instruction: sizes, kinds and layout of its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from smelt.native.kernels.fourier.ends import Blocks
from smelt.native.kernels.fourier.plan import halves, is_smooth, room_for, waste
from smelt.native.kernels.instance import Instance
from smelt.native.types import CType
from smelt.program.run_sizes import highest, lowest, same

BYTES = 64
"""The bytes of a block's rows: a vector of any CPU."""
FAR = ((1 << 19, 4.0), (1 << 17, 2.5), (1 << 15, 1.3))
"""Sizes of a block of rows in bytes, each with the slowdown beyond it."""


@dataclass(frozen=True)
class Work:
    """``outer`` times ``inner`` rows of ``given`` numbers.

    The operand is [outer, given, inner, parts], the result [outer, count, inner, 1 or 2].
    """

    type: CType
    outer: int
    given: int
    inner: int
    parts: int
    length: int
    inverse: bool
    onesided: bool

    @staticmethod
    def of(instance: Instance) -> Work:
        """Return the work of an instruction."""
        shape, axis = instance.shape(0), instance.int("axis")
        return Work(
            instance.type(0),
            math.prod(shape[:axis]),
            shape[axis],
            math.prod(shape[axis + 1 : -1]),
            shape[-1],
            instance.int("length"),
            bool(instance.int("inverse")),
            bool(instance.int("onesided")),
        )

    @property
    def is_last(self) -> bool:
        """True if the numbers of a row are contiguous."""
        return same(self.inner, 1)

    @property
    def is_beside(self) -> bool:
        """True if enough rows lie side by side to fill vectors, for all run-time sizes."""
        return not self.is_last and 2 * lowest(self.inner) >= self.lanes

    @property
    def sign(self) -> int:
        """The sign of the angle."""
        return 1 if self.inverse else -1

    @property
    def from_half(self) -> bool:
        """True if real numbers are computed from the first half of their spectrum."""
        return self.inverse and self.onesided

    @property
    def of_real(self) -> bool:
        """True if the spectrum of real numbers is computed."""
        return self.parts == 1 and not self.from_half

    @property
    def by_pairs(self) -> bool:
        """True if pairs of real numbers are transformed as complex ones, half as many."""
        return (self.of_real or self.from_half) and self.length % 2 == 0

    @property
    def size(self) -> int:
        """The number of complex numbers that are transformed."""
        return self.length // 2 if self.by_pairs else self.length

    @property
    def half(self) -> int:
        """The length of the first half of a spectrum."""
        return self.length // 2 + 1

    @property
    def count(self) -> int:
        """The number of results of a row."""
        return self.half if self.onesided and not self.inverse else self.length

    @property
    def lanes(self) -> int:
        """The number of rows of a block."""
        return BYTES // self.type.size

    @cached_property
    def convolved(self) -> int:
        """The length of the convolution that computes it, 0 if steps do."""
        return 0 if is_smooth(self.size) else room_for(self.size, self.lanes)

    @property
    def room(self) -> int:
        """The most complex numbers that a row takes.

        In one row, the parts are not a power of 2 apart: a load would wait for a store to another
        address that aliases it.
        """
        most = max(self.size, self.convolved, self.half if self.by_pairs else 0, self.count)
        return most + (5 * self.lanes if self.cut else 0)

    @cached_property
    def cut(self) -> tuple[int, int] | None:
        """The two factors into which each row is split; None if vectors hold several rows."""
        size = self.convolved or self.size
        found = halves(size, self.lanes)
        if found is None:
            return None
        rows = waste(max(1, highest(self.outer * self.inner)), self.lanes)
        memory = 4 * BYTES * size
        rows *= next((cost for bytes_, cost in FAR if memory > bytes_), 1)
        one = waste(found[0], self.lanes) * waste(found[1], self.lanes)
        return found if one * (1 if self.is_last else 2) < rows else None

    @property
    def blocks(self) -> Blocks:
        """The layout of intermediate numbers."""
        return Blocks(self.type, 1 if self.cut else self.lanes)

    @property
    def workspace(self) -> int:
        """The bytes of two arrays, and of two for the halves of a row."""
        wide = 2 * self.blocks.lanes
        inside = 2 * self.lanes * max(self.cut) if self.cut else 0
        return 2 * self.type.size * (self.room * wide + inside)
