"""What bands of one instruction along one axis read, each size of them counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from smelt.program.instruction import Instruction, Program
from smelt.program.summing import SUMMED, Summing
from smelt.program.tile_regions import Box, RegionOf
from smelt.program.tiling import Sizes, cuts_of, part_of, tile_of

Extents: TypeAlias = dict[int, dict[int, int]]
"""The most that is read of the dims of each operand, by position and dim."""


@dataclass(frozen=True)
class Tiling:
    """What it takes to compute an instruction in ``tiles`` of ``sizes``.

    ``moved``: bytes loaded and stored, where a part stays as long as the next tile needs it, too.
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
        """How much of each dim of each operand bands of ``size`` along ``axis`` read at most; None
        if there are no such bands. Only those at both ends of the axis and beside are looked at:
        others are like them."""
        if (axis, size) not in self._extents:
            self._extents[axis, size] = self._measured(axis, size)
        return self._extents[axis, size]

    def shares(self, axis: int, size: int) -> Mapping[int, float] | None:
        """How many times each operand that bands along ``axis`` read in part is read in all, halos
        twice; None if there are no such bands."""
        if (axis, size) not in self._shares:
            self._shares[axis, size] = self._counted(axis, size)
        return self._shares[axis, size]

    def tiling(self, sizes: Sizes) -> Tiling | None:
        """What tiles of ``sizes`` move; None if there are none. An operand is loaded again whenever
        a loop that it depends on goes on, and in each turn of a loop around such a one."""
        slots = self.program.slots
        counts = [self.count(axis, size) for axis, size in sizes.items()]
        shares = [self.shares(axis, size) for axis, size in sizes.items()]
        moved = float(slots[self.instruction.outputs[0]].nbytes)
        for position, slot in enumerate(self.instruction.inputs):
            told = [None if each is None else each.get(position) for each in shares]
            last = max((i for i, share in enumerate(told) if share is not None), default=-1)
            loops = zip(told[: last + 1], counts, strict=False)
            loads = prod(count if share is None else share for share, count in loops)
            moved += slots[slot].nbytes * loads if slot >= 0 else 0
        if any(each is None for each in shares):
            return None
        return Tiling(sizes, prod(counts), round(moved))

    def count(self, axis: int, size: int) -> int:
        """How many bands there are."""
        return len(self._cuts(axis, size))

    def _cuts(self, axis: int, size: int) -> list[tuple[int, int]]:
        if axis == SUMMED and self.summing is not None:
            return cuts_of(self.summing.length(self.program, self.instruction), size)
        return cuts_of(self.program.slots[self.instruction.outputs[0]].sizes[axis], size)

    def _boxes(self, axis: int, cut: tuple[int, int]) -> Mapping[int, Box] | None:
        """What one band reads; None if there is no such band, or it cuts a block of a layout."""
        if axis == SUMMED and self.summing is not None:
            region = self.summing.region(self.program, self.instruction, axis, *cut)
            boxes = region.boxes if region is not None else None
            read = [(self.instruction.inputs[p], box) for p, box in (boxes or {}).items()]
            cuts = any(self.program.slots[slot].box(box) is None for slot, box in read)
            return None if cuts else boxes
        tile = tile_of(self.program, self.instruction, {axis: cut}, self.regions)
        return None if tile is None else tile.inputs

    def _measured(self, axis: int, size: int) -> Extents | None:
        found: Extents = {}
        for cut in ends(self._cuts(axis, size)):
            boxes = self._boxes(axis, cut)
            if boxes is None:
                return None
            for position, box in boxes.items():
                lengths = found.setdefault(position, {})
                for dim, (start, stop) in box.items():
                    lengths[dim] = max(lengths.get(dim, 0), stop - start)
        return found

    def _counted(self, axis: int, size: int) -> Mapping[int, float] | None:
        slots = self.program.slots
        found: dict[int, float] = {}
        for cut in self._cuts(axis, size):
            boxes = self._boxes(axis, cut)
            if boxes is None:
                return None
            for position, box in boxes.items():
                slot = slots[self.instruction.inputs[position]]
                share = part_of(slot, box).nbytes / max(slot.nbytes, 1)
                found[position] = found.get(position, 0) + share
        return found


def ends(cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that can differ in size: at both ends, and the ones beside."""
    return cuts if len(cuts) <= 4 else [cuts[0], cuts[1], cuts[-2], cuts[-1]]
