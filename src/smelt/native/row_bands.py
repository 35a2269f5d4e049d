"""Compute the first layers of an image network band by band.

The largest tensors of such networks lie between their first convolutions. If each band of rows of
a later result is computed from the input on, only bands of the tensors between are ever there, and
rows that neighbouring bands share are computed twice: memory for time, as the patches of MCUNetV2
(Lin et al., 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TypeAlias

from smelt.native.kernels import kernel_of
from smelt.native.kernels.instance import Instance
from smelt.program.instruction import AttributeValue, DotDims, Instruction, Program
from smelt.program.overlap import STORE
from smelt.program.passes import last_use
from smelt.program.tile_regions import REGIONS, Region, RegionOf, convolution, elementwise
from smelt.program.tiling import Tile, cuts_of, part_of, tile_of

ROWS, RANK = 2, 4
"""The axis of an image that is cut, and how many an image has."""

Rows: TypeAlias = tuple[int, int]

BANDS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Into how many bands first layers are cut, as far as there are rows."""

MOST_LAYERS = 32


def _quantized(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    return convolution(program, instruction, axis, start, stop) if axis == ROWS else None


def _with_finish(region_of: RegionOf) -> RegionOf:
    """``region_of`` an operator that finishes with others, which read rows of their operands."""

    def found(
        program: Program, instruction: Instruction, axis: int, start: int, stop: int
    ) -> Region | None:
        region = region_of(program, instruction, axis, start, stop)
        for step in instruction.finish if region is not None else ():
            for position in step.operands:
                shape = program.slots[instruction.inputs[position]].shape if position >= 0 else ()
                own = axis - RANK + len(shape)
                if 0 <= own < len(shape) and shape[own] != 1:
                    assert region is not None
                    region.boxes[position] = {own: (start, stop)}
        return region

    return found


BY_ELEMENT = ("QuantizeLinear", "DequantizeLinear", "smelt::Lookup")
WINDOWED = {**REGIONS, "QLinearConv": _quantized, **dict.fromkeys(BY_ELEMENT, elementwise)}
ROW_REGIONS: Mapping[str, RegionOf] = {op: _with_finish(each) for op, each in WINDOWED.items()}
"""What rows of a result need: those of a quantized convolution as those of any other."""


def candidates(program: Program) -> Iterator[tuple[int, int, Program]]:
    """``program`` with its first layers in bands: how many of both, and the program."""
    for layers in beginnings(program):
        rows = program.slots[layers[-1].outputs[0]].sizes[ROWS]
        sizes = {ceil(rows / bands) for bands in BANDS if bands <= rows}
        for size in sorted(sizes, reverse=True):
            banded = in_bands(program, layers, size)
            if banded is not None:
                yield len(layers), ceil(rows / size), banded


def beginnings(program: Program) -> Iterator[list[Instruction]]:
    """First layers after which only the result of the last is read: they read an input of
    ``program``, constants and each other."""
    readers: dict[int, list[Instruction]] = {}
    for each in program.instructions:
        for slot in each.inputs:
            readers.setdefault(slot, []).append(each)
    for image in program.inputs:
        layers: list[Instruction] = []
        known = {image}
        for each in program.instructions:
            read = {s for s in each.inputs if s >= 0 and s not in program.constants}
            if not read or not read <= known or not _is_layer(program, each):
                continue
            layers.append(each)
            known.add(each.outputs[0])
            inside = set(map(id, layers))
            outside = [
                slot
                for slot in known - {image}
                if slot in program.outputs
                or any(id(r) not in inside for r in readers.get(slot, ()))
            ]
            if len(layers) > 1 and outside == list(each.outputs):
                yield list(layers)
            if len(layers) == MOST_LAYERS:
                break


def _is_layer(program: Program, instruction: Instruction) -> bool:
    """Whether rows of its result are it on rows of its operands, which are images or constants."""
    if len(instruction.outputs) != 1 or instruction.bodies or instruction.parts:
        return False
    if instruction.op not in ROW_REGIONS:
        return False
    images = [s for s in instruction.inputs if s >= 0 and s not in program.constants]
    shapes = [program.slots[slot].shape for slot in (*images, *instruction.outputs)]
    known = all(isinstance(dim, int) and dim for shape in shapes for dim in shape)
    return known and all(len(shape) == RANK for shape in shapes)


def in_bands(program: Program, layers: list[Instruction], size: int) -> Program | None:
    """``program`` with its first ``layers`` in bands of ``size`` rows of their last result; None if
    that cannot be."""
    made = program.copy()
    banded: list[Instruction] = []
    for bounds in cuts_of(program.slots[layers[-1].outputs[0]].sizes[ROWS], size):
        band = _Band(made, layers).of(bounds)
        if band is None:
            return None
        banded += band
    gone = set(map(id, layers))
    pairs = list(zip(program.instructions, made.instructions, strict=True))
    place = next(i for i, (old, _) in enumerate(pairs) if id(old) in gone)
    before = [new for old, new in pairs[:place] if id(old) not in gone]
    behind = [new for old, new in pairs[place:] if id(old) not in gone]
    made.instructions = [*before, *banded, *behind]
    last_use.run(made)
    return made


@dataclass
class _Band:
    """``rows`` has what readers need of each slot; ``part`` the slot that holds that much."""

    program: Program
    layers: list[Instruction]
    rows: dict[int, Rows] = field(default_factory=dict)
    part: dict[int, int] = field(default_factory=dict)
    made: list[Instruction] = field(default_factory=list)

    def of(self, bounds: Rows) -> list[Instruction] | None:
        """Instructions for the rows ``bounds`` of the last result, from the image on."""
        result = self.layers[-1].outputs[0]
        self.rows[result] = bounds
        tiles: list[Tile] = []
        for each in reversed(self.layers):
            tile = tile_of(self.program, each, {ROWS: self.rows[each.outputs[0]]}, ROW_REGIONS)
            if tile is None:
                return None
            tiles.append(tile)
            for position, slot in enumerate(each.inputs):
                if slot in self.program.constants and position in tile.inputs:
                    return None
                if slot >= 0 and slot not in self.program.constants:
                    box_read = tile.inputs.get(position, {})
                    if box_read.keys() != {ROWS}:
                        return None  # all of it is read, or a part along another axis
                    low, high = box_read[ROWS]
                    first, last = self.rows.get(slot, (low, high))
                    self.rows[slot] = min(first, low), max(last, high)
        for each, tile in zip(self.layers, reversed(tiles), strict=True):
            self._compute(each, tile)
            if not _has_kernel(self.program, self.made[-1]):
                return None
        box: dict[str, AttributeValue | DotDims] = {"axes": (ROWS,)}
        box |= {"starts": bounds[:1], "stops": bounds[1:]}
        origin = self.layers[-1].origin
        self.made.append(Instruction(STORE, (self.part[result],), (result,), box, (), origin))
        return self.made

    def _compute(self, layer: Instruction, tile: Tile) -> None:
        inputs = list(layer.inputs)
        for position, box in tile.inputs.items():
            inputs[position] = self._taken(inputs[position], box[ROWS], layer.origin)
        slot = layer.outputs[0]
        described = part_of(self.program.slots[slot], {ROWS: self.rows[slot]})
        self.part[slot] = self.program.new_slot(described)
        outputs = (self.part[slot],)
        attributes = tile.attributes
        self.made.append(
            replace(layer, inputs=tuple(inputs), outputs=outputs, attributes=attributes)
        )

    def _taken(self, slot: int, rows: Rows, origin: str) -> int:
        """The slot that holds ``rows`` of ``slot``, and nothing else."""
        source = self.part.get(slot, slot)
        whole = 0, self.program.slots[slot].sizes[ROWS]
        first, last = self.rows[slot] if slot in self.part else whole
        if rows == (first, last):
            return source
        taken = self.program.new_slot(part_of(self.program.slots[slot], {ROWS: rows}))
        attributes: dict[str, AttributeValue | DotDims] = {"axes": (ROWS,), "steps": (1,)}
        attributes |= {"starts": (rows[0] - first,), "ends": (rows[1] - first,)}
        self.made.append(Instruction("Slice", (source,), (taken,), attributes, (), origin))
        return taken


def _has_kernel(program: Program, band: Instruction) -> bool:
    """Whether a kernel computes ``band`` as it does the whole: small images may take another."""
    instance, kernel = Instance(program, band), kernel_of(band.op)
    if kernel is None or kernel.refuse(instance) is not None:
        return False
    places = [place for step in band.finish for place in step.operands if place >= 0]
    slots = (*(band.inputs[place] for place in places), *band.outputs)
    shapes = [program.slots[slot].sizes for slot in slots]
    return not band.finish or all(kernel.finishes(instance, shape) for shape in shapes)
