"""What bands of one instruction along one axis read, each size of them counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from smelt.program.instruction import Instruction, Program
from smelt.program.tile_regions import RegionOf
from smelt.program.tiling import cuts_of, part_of, tile_of

Extents: TypeAlias = dict[int, dict[int, int]]
"""The most that is read of the dims of each operand, by position and dim."""


@dataclass
class Bands:
    """Bands of the result of ``instruction`` along one axis, of any size."""

    program: Program
    instruction: Instruction
    regions: Mapping[str, RegionOf]
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

    def _cuts(self, axis: int, size: int) -> list[tuple[int, int]]:
        return cuts_of(self.program.slots[self.instruction.outputs[0]].sizes[axis], size)

    def _measured(self, axis: int, size: int) -> Extents | None:
        found: Extents = {}
        for cut in ends(self._cuts(axis, size)):
            tile = tile_of(self.program, self.instruction, {axis: cut}, self.regions)
            if tile is None:
                return None
            for position, box in tile.inputs.items():
                lengths = found.setdefault(position, {})
                for dim, (start, stop) in box.items():
                    lengths[dim] = max(lengths.get(dim, 0), stop - start)
        return found

    def _counted(self, axis: int, size: int) -> Mapping[int, float] | None:
        slots = self.program.slots
        found: dict[int, float] = {}
        for cut in self._cuts(axis, size):
            tile = tile_of(self.program, self.instruction, {axis: cut}, self.regions)
            if tile is None:
                return None
            for position, box in tile.inputs.items():
                slot = slots[self.instruction.inputs[position]]
                share = part_of(slot, box).nbytes / max(slot.nbytes, 1)
                found[position] = found.get(position, 0) + share
        return found


def ends(cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that can differ in size: at both ends, and the ones beside."""
    return cuts if len(cuts) <= 4 else [cuts[0], cuts[1], cuts[-2], cuts[-1]]
