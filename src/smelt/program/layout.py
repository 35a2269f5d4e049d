"""The order in which the elements of a tensor lie in memory: permuted, in blocks, padded.

A layout is written as in oneDNN ("Understanding Memory Formats"): a capital letter for a dim, a
number and a small letter for a block of it, outermost first. ``Layout("NCHW", "NHWC")`` has
channels innermost; ``Layout("NCHW", "NCHW16c")`` blocks of 16 channels; ``Layout("OIHW",
"OIHW4i16o4i")`` interleaves two levels; ``Layout("NCHW", "NHW8wC")`` pads rows to multiples of 8.
A dim that is no multiple of its blocks is padded with zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from smelt.errors import UsageError

_TERM = re.compile(r"([A-Z])|([1-9][0-9]*)([a-z])")


@dataclass(frozen=True)
class Layout:
    """The memory order of a tensor with dims ``axes``, one letter each.

    ``order`` lists those letters, outermost first, with blocks. Layouts that differ in letters only
    are equal. Raises UsageError E660 if a dim is missing, repeated, or unknown.
    """

    axes: str = field(compare=False)
    order: str = field(compare=False)
    terms: tuple[tuple[int, int], ...] = field(init=False, repr=False)
    """``(axis, block)`` of each dim in memory; a block of 0 is the outer dim of the axis."""

    def __post_init__(self) -> None:
        """Parse ``order`` into ``terms``: ``NCHW16c`` is N, C, H, W, then blocks of 16 channels.

        A term is (axis, block); the block of a whole axis is 0.
        """
        terms = []
        position = 0
        while match := _TERM.match(self.order, position):
            letter = match[1] or match[3].upper()
            terms.append((self.axes.find(letter), 0 if match[1] else int(match[2])))
            position = match.end()
        outer_axes = sorted(axis for axis, block in terms if not block)
        axes_are_known = all(axis >= 0 for axis, _ in terms)
        if (
            position < len(self.order)
            or not axes_are_known
            or outer_axes != list(range(len(self.axes)))
        ):
            raise UsageError(
                "E660",
                f"{self.order!r} is not a layout of {self.axes!r}",
                why="a layout has each dim once as a capital letter, then blocks such as 16c",
                fix='for instance: Layout("NCHW", "NHWC") or Layout("NCHW", "NCHW16c")',
            )
        object.__setattr__(self, "terms", tuple(terms))

    @property
    def rank(self) -> int:
        """Return the rank of a tensor of this layout."""
        return len(self.axes)

    def block(self, axis: int) -> int:
        """Return the number of elements along ``axis`` in one block: 1 without blocks."""
        return prod(block for term_axis, block in self.terms if term_axis == axis and block)

    def stored(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes in memory of a tensor of ``shape``, including padding."""
        return tuple(block or -(-shape[axis] // self.block(axis)) for axis, block in self.terms)

    def pack(self, array: np.ndarray) -> np.ndarray:
        """Return ``array`` in this layout, with the sizes of ``stored``."""
        self._check(array.shape)
        padding = [(0, -size % self.block(axis)) for axis, size in enumerate(array.shape)]
        padded = np.pad(array, padding) if any(end for _, end in padding) else array
        split, dim_of = self._split(array.shape)
        order = [dim_of[term] for term in range(len(self.terms))]
        return np.ascontiguousarray(padded.reshape(split).transpose(order))

    def unpack(self, stored: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the array of ``shape`` whose packed form is ``stored``.

        1. Bring the dims of ``stored``, one per term of the layout, to the order of the axes.
        2. Merge the blocks of each axis.
        3. Drop the padding.
        """
        self._check(shape)
        split, dim_of = self._split(shape)
        inverse = [0] * len(split)
        for term, dim in dim_of.items():
            inverse[dim] = term
        blocks = stored.reshape(self.stored(shape)).transpose(inverse)
        padded = blocks.reshape(
            [-(-n // self.block(a)) * self.block(a) for a, n in enumerate(shape)]
        )
        return np.ascontiguousarray(padded[tuple(map(slice, shape))])

    def box(
        self, shape: tuple[int, ...], box: Mapping[int, tuple[int, int]]
    ) -> tuple[tuple[int, int], ...] | None:
        """Return start and stop per dim in memory of a ``box`` of the tensor, given by axis.

        None if the box cuts a block. In ``NCHW16c``, a box of channels 16 to 48 has the outer
        indices 1 to 3 and all 16 elements of each block.
        """
        bounds = []
        for axis, block in self.terms:
            start, stop = box.get(axis, (0, shape[axis]))
            whole = self.block(axis)
            if start % whole or (stop % whole and stop != shape[axis]):
                return None
            bounds.append((0, block) if block else (start // whole, -(-stop // whole)))
        return tuple(bounds)

    def _split(self, shape: tuple[int, ...]) -> tuple[list[int], dict[int, int]]:
        """Return the sizes of the padded tensor with blocks as own dims, and the dim of each
        term."""
        sizes: list[int] = []
        dim_of: dict[int, int] = {}
        for axis in range(self.rank):
            outer_term = next(number for number, term in enumerate(self.terms) if term == (axis, 0))
            block_terms = [
                number
                for number, (axis_of_term, block) in enumerate(self.terms)
                if axis_of_term == axis and block
            ]
            for term in (outer_term, *block_terms):
                dim_of[term] = len(sizes)
                sizes.append(self.terms[term][1] or -(-shape[axis] // self.block(axis)))
        return sizes, dim_of

    def _check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if ``shape`` has another rank than the layout."""
        if len(shape) != self.rank:
            raise ValueError(f"{self} is not a layout of a tensor of shape {shape}")

    def __str__(self) -> str:
        return self.order
