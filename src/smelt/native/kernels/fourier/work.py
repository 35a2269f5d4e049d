"""The work of one DFT instruction: sizes, kinds and layout of its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from smelt.native.kernels.fourier.ends import Blocks
from smelt.native.kernels.fourier.plan import convolution_length, halves, is_smooth, waste
from smelt.native.kernels.instance import Instance
from smelt.native.types import CType
from smelt.program.run_sizes import highest, lowest, same

BYTES = 64
"""The bytes of a block's rows: a vector of any CPU."""
FAR = ((1 << 19, 4.0), (1 << 17, 2.5), (1 << 15, 1.3))
"""Sizes of a block of rows in bytes, each with the slowdown beyond it."""


@dataclass(frozen=True)
class Work:
    """The amount of work of one DFT: ``outer`` times ``inner`` rows of ``input_count`` numbers.

    The operand is [outer, input_count, inner, parts], the result [outer, count, inner, 1 or 2].
    """

    type: CType
    outer: int
    input_count: int
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
    def is_interleaved(self) -> bool:
        """True if ``inner`` rows, whose elements alternate in memory, fill vectors at all run-time
        sizes.
        """
        return not self.is_last and 2 * lowest(self.inner) >= self.lanes

    @property
    def sign(self) -> int:
        """The sign of the angle in ``exp(sign * 2i pi k n / length)``: -1, or 1 for the inverse."""
        return 1 if self.inverse else -1

    @property
    def from_half(self) -> bool:
        """True if the operand is the first half of a spectrum and the result is real."""
        return self.inverse and self.onesided

    @property
    def of_real(self) -> bool:
        """True if the operand is real."""
        return self.parts == 1 and not self.from_half

    @property
    def by_pairs(self) -> bool:
        """True if pairs of real numbers are transformed as complex numbers, in a transform half as
        long.
        """
        return (self.of_real or self.from_half) and self.length % 2 == 0

    @property
    def size(self) -> int:
        """The number of complex numbers of a transform; two real numbers by pairs make one."""
        return self.length // 2 if self.by_pairs else self.length

    @property
    def half(self) -> int:
        """The number of elements in the first half of a spectrum: 5 for rows of 8 real numbers."""
        return self.length // 2 + 1

    @property
    def count(self) -> int:
        """The number of results of a row: half of a spectrum if the other half mirrors it."""
        return self.half if self.onesided and not self.inverse else self.length

    @property
    def lanes(self) -> int:
        """The number of rows of a block: one element of each row fills a vector of ``BYTES``."""
        return BYTES // self.type.size

    @cached_property
    def convolved(self) -> int:
        """The length of the convolution that computes the transform; 0 if steps of factors do."""
        return 0 if is_smooth(self.size) else convolution_length(self.size, self.lanes)

    @property
    def room(self) -> int:
        """The most complex numbers that a row takes in an intermediate array.

        If the array has one row, its parts are not a power of 2 apart: otherwise loads would wait
        for stores to addresses that alias them.
        """
        most = max(self.size, self.convolved, self.half if self.by_pairs else 0, self.count)
        return most + (5 * self.lanes if self.cut else 0)

    @cached_property
    def cut(self) -> tuple[int, int] | None:
        """The factors of a row that is transformed alone, as a matrix; None for blocks of rows.

        The cheaper way wins. A block of rows wastes lanes if rows are few, and is slow if it is
        ``FAR`` larger than a cache. A row alone wastes lanes of both factors, and costs twice as
        much if its elements are not contiguous.
        """
        size = self.convolved or self.size
        two_factors = halves(size, self.lanes)
        if two_factors is None:
            return None
        cost_in_blocks = waste(max(1, highest(self.outer * self.inner)), self.lanes)
        block_bytes = 4 * BYTES * size
        cost_in_blocks *= next((slowdown for most, slowdown in FAR if block_bytes > most), 1)
        cost_alone = waste(two_factors[0], self.lanes) * waste(two_factors[1], self.lanes)
        cost_alone *= 1 if self.is_last else 2
        return two_factors if cost_alone < cost_in_blocks else None

    @property
    def blocks(self) -> Blocks:
        """The layout of intermediate numbers."""
        return Blocks(self.type, 1 if self.cut else self.lanes)

    @property
    def workspace(self) -> int:
        """The bytes of two arrays of intermediate numbers, and of two for the halves of a row."""
        numbers_per_element = 2 * self.blocks.lanes
        halves_bytes = 2 * self.lanes * max(self.cut) if self.cut else 0
        return 2 * self.type.size * (self.room * numbers_per_element + halves_bytes)
