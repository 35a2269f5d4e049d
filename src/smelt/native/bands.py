"""Compute consecutive layers in bands, so that only bands of their intermediates are in memory.

Rows that neighboring bands share are computed twice. This trades time for memory, as patches do in
MCUNetV2 (Lin et al., 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from smelt.native.kernels import kernel_of
from smelt.native.kernels.instance import Instance
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program
from smelt.program.overlap import STORE
from smelt.program.passes import last_use
from smelt.program.tile_regions import RegionOf
from smelt.program.tiling import Tile, cuts_of, part_of, tile_of

Rows = tuple[int, int, int]
"""An axis, and the start and stop of a range of its elements."""


def in_bands(
    program: Program,
    layers: Sequence[Instruction],
    size: int,
    axis: int,
    regions: Mapping[str, RegionOf],
    returned: Sequence[int] = (),
) -> Program | None:
    """Return ``program`` with ``layers`` computed in bands of ``size`` along ``axis``.

    ``axis`` belongs to the last layer's result. ``returned`` are other results of the layers that
    are read elsewhere; each band computes a share of them. None if the layers cannot be cut.
    """
    made = program.copy()
    banded: list[Instruction] = []
    whole = program.slots[layers[-1].outputs[0]].sizes[axis]
    for start, stop in cuts_of(whole, size):
        band = _Band(made, layers, regions, returned).of(axis, start, stop)
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
    """The construction of one band.

    ``rows`` holds the range of each slot that readers need, ``part`` the slot that holds that
    range.
    """

    program: Program
    layers: Sequence[Instruction]
    regions: Mapping[str, RegionOf]
    returned: Sequence[int]
    rows: dict[int, Rows] = field(default_factory=dict)
    part: dict[int, int] = field(default_factory=dict)
    made: list[Instruction] = field(default_factory=list)

    def of(self, axis: int, start: int, stop: int) -> list[Instruction] | None:
        """Return the instructions of a band of the last result; None if a layer cannot be cut."""
        result = self.layers[-1].outputs[0]
        self.rows[result] = (axis, start, stop)
        whole = self.program.slots[result].sizes[axis]
        stored: dict[int, Rows] = {result: self.rows[result]}
        tiles: list[Tile] = []
        for each in reversed(self.layers):
            slot = each.outputs[0]
            if slot in self.returned and not self._share(slot, (start, stop), whole, stored):
                return None
            tile = self._tile(each)
            if tile is None:
                return None
            tiles.append(tile)
        for each, tile in zip(self.layers, reversed(tiles), strict=True):
            self._compute(each, tile)
            if not _has_kernel(self.program, self.made[-1]):
                return None
            self._store(each, stored)
        return self.made

    def _share(self, slot: int, band: tuple[int, int], whole: int, stored: dict[int, Rows]) -> bool:
        """Add this band's share of a result that is read elsewhere; False if it cannot be cut.

        If no layer reads the result, it is cut like the last result.
        """
        sizes = self.program.slots[slot].sizes
        if slot not in self.rows:
            last_axis = stored[self.layers[-1].outputs[0]][0]
            if last_axis >= len(sizes) or sizes[last_axis] != whole:
                return False
            self.rows[slot] = (last_axis, *band)
        axis, low, high = self.rows[slot]
        first, last = (sizes[axis] * place // whole for place in band)
        self.rows[slot] = (axis, min(low, first), max(high, last))
        stored[slot] = (axis, first, last)
        return True

    def _tile(self, each: Instruction) -> Tile | None:
        """Return the tile that computes the needed rows of a layer, and record what it reads.

        None if it reads a whole intermediate, or a part along several axes.
        """
        if each.outputs[0] not in self.rows:
            return None
        axis, low, high = self.rows[each.outputs[0]]
        tile = tile_of(self.program, each, {axis: (low, high)}, self.regions)
        if tile is None:
            return None
        inside = {layer.outputs[0] for layer in self.layers}
        for position, slot in enumerate(each.inputs):
            box = tile.inputs.get(position, {})
            if slot < 0 or (slot in self.program.constants and not box):
                continue
            if slot in self.program.constants or (slot in inside and len(box) != 1):
                return None  # reads all of it, or a part along several axes
            if slot in inside and not self._need(slot, *next(iter(box.items()))):
                return None
        return tile

    def _need(self, slot: int, axis: int, box: tuple[int, int]) -> bool:
        known, first, last = self.rows.get(slot, (axis, *box))
        self.rows[slot] = (axis, min(first, box[0]), max(last, box[1]))
        return known == axis

    def _compute(self, layer: Instruction, tile: Tile) -> None:
        """Add the layer on its tile."""
        inputs = list(layer.inputs)
        for position, box in tile.inputs.items():
            for axis, bounds in box.items():
                inputs[position] = self._taken(inputs[position], (axis, *bounds), layer.origin)
        slot = layer.outputs[0]
        axis, low, high = self.rows[slot]
        described = part_of(self.program.slots[slot], {axis: (low, high)})
        self.part[slot] = self.program.new_slot(described)
        outputs, attributes = (self.part[slot],), tile.attributes
        self.made.append(
            replace(layer, inputs=tuple(inputs), outputs=outputs, attributes=attributes)
        )

    def _store(self, layer: Instruction, stored: Mapping[int, Rows]) -> None:
        """Add a STORE of the band's share of a result that is read elsewhere."""
        slot = layer.outputs[0]
        axis, first, last = stored.get(slot, (0, 0, 0))
        if first == last:
            return
        source = self._taken(slot, (axis, first, last), layer.origin)
        box: dict[str, AttributeValue | DotDims] = {"axes": (axis,)}
        box |= {"starts": (first,), "stops": (last,)}
        self.made.append(Instruction(STORE, (source,), (slot,), box, (), layer.origin))

    def _taken(self, slot: int, rows: Rows, origin: str) -> int:
        """Return a slot with exactly ``rows`` of ``slot``, by a Slice if needed."""
        axis, low, high = rows
        source = self.part.get(slot, slot)
        whole = 0, self.program.slots[slot].sizes[axis]
        first, last = self.rows[slot][1:] if slot in self.part else whole
        if (low, high) == (first, last):
            return source
        taken = self.program.new_slot(part_of(self.program.slots[slot], {axis: (low, high)}))
        attributes: dict[str, AttributeValue | DotDims] = {"axes": (axis,), "steps": (1,)}
        attributes |= {"starts": (low - first,), "ends": (high - first,)}
        self.made.append(Instruction("Slice", (source,), (taken,), attributes, (), origin))
        return taken


def _has_kernel(program: Program, band: Instruction) -> bool:
    """True if a kernel computes ``band`` with its epilogue; small images may need another
    kernel."""
    instance, kernel = Instance(program, band), kernel_of(band.op)
    if kernel is None or kernel.refuse(instance) is not None:
        return False
    places = [place for step in band.epilogue for place in step.operands if place >= 0]
    slots = (*(band.inputs[place] for place in places), *band.outputs)
    shapes = [program.slots[slot].sizes for slot in slots]
    return not band.epilogue or all(
        kernel.supports_side_operand(instance, shape) for shape in shapes
    )
