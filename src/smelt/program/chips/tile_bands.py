"""The cost of tiles: how much an instruction reads of its operands in bands of a size on an axis.

A band is a part of the result between two positions of one axis, a tile the intersection of bands
along several axes. Each axis is measured by itself, once for each band size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from smelt.program.chips.summing import SUMMED, Summing
from smelt.program.chips.tile_regions import Box, RegionOf
from smelt.program.chips.tiling import Sizes, cuts_of, part_of, tile_of
from smelt.program.instruction import Instruction, Program

Extents: TypeAlias = dict[int, dict[int, int]]
"""The largest extent read of each dim of each operand, by position and dim."""


@dataclass(frozen=True)
class Tiling:
    """The cost of computing an instruction in tiles of ``sizes``; ``tiles`` is their number.

    ``moved`` are the bytes loaded and stored, if a part of an operand that the next tile reads,
    too, stays loaded.
    """

    sizes: Sizes
    tiles: int
    moved: int


@dataclass
class Bands:
    """Bands of the result of ``instruction`` along one axis, of any size."""

    program: Program
    instruction: Instruction
    regions: Mapping[str, RegionOf]
    summing: Summing | None = None
    """How it sums in parts, which count as bands along the axis ``SUMMED``."""
    _shares: dict[tuple[int, int], Mapping[int, float] | None] = field(default_factory=dict)
    _extents: dict[tuple[int, int], Extents | None] = field(default_factory=dict)

    def extents(self, axis: int, size: int) -> Extents | None:
        """Return the largest extents that bands of ``size`` along ``axis`` read of each operand.

        None if a band is not valid. Only the two bands at each end of the axis are inspected: the
        others are alike.
        """
        if (axis, size) not in self._extents:
            self._extents[axis, size] = self._compute_extents(axis, size)
        return self._extents[axis, size]

    def shares(self, axis: int, size: int) -> Mapping[int, float] | None:
        """Return how often all bands of ``size`` along ``axis`` together read an element of each
        operand, on average.

        It is 1 for an operand that is cut without halos; rows that two bands read count twice.
        An operand that each band reads whole is left out. None if a band is not valid.
        """
        if (axis, size) not in self._shares:
            self._shares[axis, size] = self._compute_shares(axis, size)
        return self._shares[axis, size]

    def tiling(self, sizes: Sizes) -> Tiling | None:
        """Return the cost of tiles of ``sizes``; None if such tiles are not valid.

        The tiles are computed in nested loops, one for each axis of ``sizes``. An operand is loaded
        again in each iteration of a loop that cuts it, and of the loops around that loop.
        """
        slots = self.program.slots
        counts = [self.count(axis, size) for axis, size in sizes.items()]
        shares = [self.shares(axis, size) for axis, size in sizes.items()]
        bytes_moved = float(slots[self.instruction.outputs[0]].nbytes)
        for position, slot in enumerate(self.instruction.inputs):
            operand_shares = [
                None if axis_shares is None else axis_shares.get(position) for axis_shares in shares
            ]
            last = max(
                (i for i, share in enumerate(operand_shares) if share is not None), default=-1
            )
            loops = zip(operand_shares[: last + 1], counts, strict=False)
            loads = prod(count if share is None else share for share, count in loops)
            bytes_moved += slots[slot].nbytes * loads if slot >= 0 else 0
        if any(axis_shares is None for axis_shares in shares):
            return None
        return Tiling(sizes, prod(counts), round(bytes_moved))

    def count(self, axis: int, size: int) -> int:
        """Return the number of bands of ``size`` along ``axis``."""
        return len(self._cuts(axis, size))

    def _cuts(self, axis: int, size: int) -> list[tuple[int, int]]:
        """Return start and stop of each band of ``size`` along ``axis``."""
        if axis == SUMMED and self.summing is not None:
            return cuts_of(self.summing.length(self.program, self.instruction), size)
        return cuts_of(self.program.slots[self.instruction.outputs[0]].sizes[axis], size)

    def _boxes(self, axis: int, cut: tuple[int, int]) -> Mapping[int, Box] | None:
        """Return the box that the band ``cut`` reads of each operand; None if the band is not
        valid, or cuts a block of a layout.
        """
        if axis == SUMMED and self.summing is not None:
            region = self.summing.region(self.program, self.instruction, axis, *cut)
            boxes = region.boxes if region is not None else None
            read = [(self.instruction.inputs[p], box) for p, box in (boxes or {}).items()]
            cuts_block = any(self.program.slots[slot].box(box) is None for slot, box in read)
            return None if cuts_block else boxes
        tile = tile_of(self.program, self.instruction, {axis: cut}, self.regions)
        return None if tile is None else tile.inputs

    def _compute_extents(self, axis: int, size: int) -> Extents | None:
        """Return what ``extents`` returns, without the cache."""
        extents: Extents = {}
        for cut in end_cuts(self._cuts(axis, size)):
            boxes = self._boxes(axis, cut)
            if boxes is None:
                return None
            for position, box in boxes.items():
                lengths = extents.setdefault(position, {})
                for dim, (start, stop) in box.items():
                    lengths[dim] = max(lengths.get(dim, 0), stop - start)
        return extents

    def _compute_shares(self, axis: int, size: int) -> Mapping[int, float] | None:
        """Return what ``shares`` returns, without the cache."""
        slots = self.program.slots
        shares: dict[int, float] = {}
        for cut in self._cuts(axis, size):
            boxes = self._boxes(axis, cut)
            if boxes is None:
                return None
            for position, box in boxes.items():
                slot = slots[self.instruction.inputs[position]]
                share = part_of(slot, box).nbytes / max(slot.nbytes, 1)
                shares[position] = shares.get(position, 0) + share
        return shares


def end_cuts(cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the cuts that can differ in size: the two at each end."""
    return cuts if len(cuts) <= 4 else [cuts[0], cuts[1], cuts[-2], cuts[-1]]
