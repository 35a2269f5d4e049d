"""Splits an instruction into tiles: bands of its result along one axis, or boxes along several.

``tile_regions`` says, axis by axis, what a tile reads of each operand. Tiles that read the same
part of an operand share it, so weights stay loaded while the rows of an image are processed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, repeat
from math import prod
from typing import TypeAlias

from smelt.program.chips.staging import BAND, JOIN
from smelt.program.chips.summing import SUMMED, Summing, chain
from smelt.program.chips.tile_regions import REGIONS, Box, Region, RegionOf
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program, Slot

Sizes: TypeAlias = Mapping[int, int]
"""The tile size along each axis that is cut, outermost loop first."""


@dataclass
class Tile:
    """One tile: its box of the result, the box of each operand that it reads, and its
    attributes."""

    box: Box
    inputs: dict[int, Box] = field(default_factory=dict)
    attributes: Mapping[str, AttributeValue | DotDims] = field(default_factory=dict)


def split(
    program: Program,
    instruction: Instruction,
    sizes: Sizes,
    regions: Mapping[str, RegionOf] = REGIONS,
    summing: Summing | None = None,
) -> list[Instruction] | None:
    """Return the instructions that compute ``instruction`` in tiles of ``sizes``.

    A tile is a Band of each operand, and the operator on these Bands. A Join puts all tiles into
    the result. With a size for ``SUMMED``, each tile sums in parts. None if ``instruction`` cannot
    be split. New slots are added to ``program``.
    """
    result = program.slots[instruction.outputs[0]]
    if len(instruction.outputs) != 1 or any(axis >= len(result.shape) for axis in sizes):
        return None
    cuts = {axis: cuts_of(result.sizes[axis], n) for axis, n in sizes.items() if axis != SUMMED}
    tiles = list(_tiles(program, instruction, cuts, regions))
    sum_regions: list[Region] | None = []
    if summing is not None and SUMMED in sizes:
        sum_regions = summing.parts(program, instruction, sizes[SUMMED])
    if sum_regions is None or len(tiles) * max(len(sum_regions), 1) < 2 or not all(tiles):
        return None
    bands = _Bands(program, instruction.origin)
    tile_slots = []
    for tile in tiles:
        assert tile is not None
        tile_slot = instruction.outputs[0]
        if len(tiles) > 1:
            tile_slot = program.new_slot(part_of(result, tile.box))
        tile_slots.append(tile_slot)
        tile_instruction = replace(instruction, outputs=(tile_slot,), attributes=tile.attributes)
        if summing and sum_regions:
            partial_sums = chain(program, tile_instruction, tile_slot, sum_regions, summing)
            for number, (part_of_sum, boxes) in enumerate(partial_sums):
                previous_sum = summing.carried if number else None
                bands.emit(part_of_sum, merged_boxes(tile.inputs, boxes), previous_sum)
        else:
            bands.emit(tile_instruction, tile.inputs, None)
    if len(tiles) > 1:
        bands.instructions.append(_join(instruction, tile_slots, cuts))
    return bands.instructions


def _join(
    instruction: Instruction, parts: Sequence[int], cuts: Mapping[int, list[tuple[int, int]]]
) -> Instruction:
    """Return the Join of ``parts``, the tiles at all combinations of ``cuts``, to the result."""
    starts = tuple(start for bounds in product(*cuts.values()) for start, _ in bounds)
    attributes: dict[str, AttributeValue | DotDims] = {"axes": tuple(cuts), "starts": starts}
    return Instruction(JOIN, tuple(parts), instruction.outputs, attributes, (), instruction.origin)


def merged_boxes(boxes: Mapping[int, Box], other_boxes: Mapping[int, Box]) -> dict[int, Box]:
    """Return the boxes of operands that two kinds of cuts leave together.

    One kind cuts the result, the other the summed terms; they never cut the same dim.
    """
    return {p: {**boxes.get(p, {}), **other_boxes.get(p, {})} for p in {**boxes, **other_boxes}}


@dataclass
class _Bands:
    """A list of instructions on boxes of operands, in which equal boxes share one Band."""

    program: Program
    origin: str
    instructions: list[Instruction] = field(default_factory=list)
    known: dict[tuple[int, tuple[tuple[int, tuple[int, int]], ...]], int] = field(
        default_factory=dict
    )

    def emit(self, step: Instruction, boxes: Mapping[int, Box], previous_sum: int | None) -> None:
        """Append ``step`` on ``boxes`` of its operands.

        ``previous_sum`` is the position of the operand that is the sum of the previous step, as
        large as the tile already; None for the first step.
        """
        inputs = list(step.inputs)
        for position, box in boxes.items():
            if position == previous_sum:
                continue
            key = inputs[position], tuple(sorted(box.items()))
            if key not in self.known:
                band = _band(self.program, self.instructions, inputs[position], box, self.origin)
                self.known[key] = band
            inputs[position] = self.known[key]
        self.instructions.append(replace(step, inputs=tuple(inputs)))


def cuts_of(length: int, size: int) -> list[tuple[int, int]]:
    """Return start and stop of each band of ``size``."""
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def tile_of(
    program: Program, instruction: Instruction, box: Box, regions: Mapping[str, RegionOf]
) -> Tile | None:
    """Return the tile of ``box``; None if it is not valid, or cuts a block of a layout."""
    return next(_tiles(program, instruction, {a: [cut] for a, cut in box.items()}, regions))


def _tiles(
    program: Program,
    instruction: Instruction,
    cuts: Mapping[int, Sequence[tuple[int, int]]],
    regions: Mapping[str, RegionOf],
) -> Iterator[Tile | None]:
    """Yield the tiles of all combinations of ``cuts``, last axis fastest; None for an invalid tile.

    The instruction is cut along one axis after the other; each cut along an outer axis is computed
    once for all tiles inside of it. ``draft`` holds the slots of the instructions in between.
    """
    region_of = regions.get(instruction.op)
    draft, alone_instruction = _in_own_program(program, instruction)
    axes = list(cuts.items())

    def tiles_inside(number: int, current: Instruction, tile: Tile) -> Iterator[Tile | None]:
        """Yield the tiles of ``current`` by the cuts from number ``number`` on."""
        if number == len(axes):
            yield tile if _is_whole_blocks(program, instruction, tile) else None
            return
        axis, bands = axes[number]
        for band in bands:
            slot_count = len(draft.slots)
            region = None if region_of is None else region_of(draft, current, axis, *band)
            if region is None:  # so none of the tiles inside this band is valid
                count = prod(len(bands_of_axis) for _, bands_of_axis in axes[number + 1 :])
                yield from repeat(None, count)
                continue
            parts = {
                operand: _in_whole(tile.inputs.get(operand, {}), box)
                for operand, box in region.boxes.items()
            }
            attributes = {**current.attributes, **region.attributes}
            cut = Tile({**tile.box, axis: band}, {**tile.inputs, **parts}, attributes)
            yield from tiles_inside(
                number + 1, _cut_instruction(draft, current, region, axis, band), cut
            )
            del draft.slots[slot_count:]

    yield from tiles_inside(0, alone_instruction, Tile({}, {}, instruction.attributes))


def _cut_instruction(
    draft: Program, current: Instruction, region: Region, axis: int, band: tuple[int, int]
) -> Instruction:
    """Return ``current`` cut to ``band``: on the boxes of ``region``, in new slots of ``draft``."""
    inputs = list(current.inputs)
    for position, part in region.boxes.items():
        inputs[position] = draft.new_slot(part_of(draft.slots[inputs[position]], part))
    result = part_of(draft.slots[current.outputs[0]], {axis: band})
    outputs = (draft.new_slot(result), *current.outputs[1:])
    attributes = {**current.attributes, **region.attributes}
    return replace(current, inputs=tuple(inputs), outputs=outputs, attributes=attributes)


def _is_whole_blocks(program: Program, instruction: Instruction, tile: Tile) -> bool:
    """True if no box of ``tile`` cuts a block of a layout."""
    boxes = [(instruction.outputs[0], tile.box)]
    boxes += [(instruction.inputs[position], part) for position, part in tile.inputs.items()]
    return all(program.slots[slot].box(part) is not None for slot, part in boxes)


def _in_own_program(program: Program, instruction: Instruction) -> tuple[Program, Instruction]:
    """Return ``instruction`` in a program of its own, to which slots may be added."""
    used = [slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0]
    number = {slot: i for i, slot in enumerate(dict.fromkeys(used))}
    slots = [program.slots[slot] for slot in number]
    constants = {number[s]: program.constants[s] for s in number if s in program.constants}
    inputs = tuple(number.get(slot, slot) for slot in instruction.inputs)
    outputs = tuple(number.get(slot, slot) for slot in instruction.outputs)
    alone = replace(program, slots=slots, constants=constants, instructions=[])
    return alone, replace(instruction, inputs=inputs, outputs=outputs)


def _in_whole(outer: Box, inner: Box) -> Box:
    """Return ``inner``, a box relative to ``outer``, as a box of the whole tensor."""
    in_original = {
        axis: (start + outer.get(axis, (0, 0))[0], stop + outer.get(axis, (0, 0))[0])
        for axis, (start, stop) in inner.items()
    }
    return {**outer, **in_original}


def _band(
    program: Program, instructions: list[Instruction], slot: int, box: Box, origin: str
) -> int:
    """Append an instruction that takes ``box`` of ``slot``; return the slot of its result."""
    part = program.new_slot(part_of(program.slots[slot], box))
    starts, stops = zip(*box.values(), strict=True)
    attributes = {"axes": tuple(box), "starts": starts, "stops": stops}
    instructions.append(Instruction(BAND, (slot,), (part,), attributes, (), origin))
    return part


def part_of(slot: Slot, box: Box) -> Slot:
    """Return a new slot for the sub-tensor ``box`` of ``slot``."""
    shape = list(slot.shape)
    for axis, (start, stop) in box.items():
        shape[axis] = stop - start
    name = f"{slot.name}[{', '.join(f'{a}: {b}-{c}' for a, (b, c) in box.items())}]"
    return replace(slot, shape=tuple(shape), name=name)
