"""Compute consecutive layers in bands, so that only bands of their intermediates are in memory.

Rows that neighboring bands share are computed twice. This trades time for memory, as patches do in
MCUNetV2 (Lin et al., 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from smelt.native.kernels import kernel_of
from smelt.native.kernels.instance import Instance
from smelt.program.chips.overlap import STORE
from smelt.program.chips.tile_regions import RegionOf
from smelt.program.chips.tiling import Tile, cuts_of, part_of, tile_of
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program
from smelt.program.passes import last_use

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
    """Return a copy of ``program`` that computes ``layers`` in bands of ``size`` along ``axis``.

    ``axis`` is an axis of the last layer's result. ``returned`` are other results of ``layers``
    that later instructions read; each band stores its share of them. None if a layer cannot be cut.
    """
    banded_program = program.copy()
    banded: list[Instruction] = []
    full_size = program.slots[layers[-1].outputs[0]].sizes[axis]
    for start, stop in cuts_of(full_size, size):
        band = _Band(banded_program, layers, regions, returned).of(axis, start, stop)
        if band is None:
            return None
        banded += band
    layer_ids = set(map(id, layers))
    pairs = list(zip(program.instructions, banded_program.instructions, strict=True))
    band_index = next(i for i, (old, _) in enumerate(pairs) if id(old) in layer_ids)
    before = [new for old, new in pairs[:band_index] if id(old) not in layer_ids]
    after = [new for old, new in pairs[band_index:] if id(old) not in layer_ids]
    banded_program.instructions = [*before, *banded, *after]
    last_use.run(banded_program)
    return banded_program


@dataclass
class _Band:
    """The construction of the instructions of one band.

    ``rows`` is the range of each slot that the layers after it read. ``part`` is the new slot that
    contains that range. ``made`` are the new instructions.
    """

    program: Program
    layers: Sequence[Instruction]
    regions: Mapping[str, RegionOf]
    returned: Sequence[int]
    rows: dict[int, Rows] = field(default_factory=dict)
    part: dict[int, int] = field(default_factory=dict)
    made: list[Instruction] = field(default_factory=list)

    def of(self, axis: int, start: int, stop: int) -> list[Instruction] | None:
        """Return the instructions that compute a band of the last result; None if a layer cannot be
        cut.
        """
        result = self.layers[-1].outputs[0]
        self.rows[result] = (axis, start, stop)
        axis_size = self.program.slots[result].sizes[axis]
        stored: dict[int, Rows] = {result: self.rows[result]}
        tiles: list[Tile] = []
        for each in reversed(self.layers):
            slot = each.outputs[0]
            if slot in self.returned and not self._share(slot, (start, stop), axis_size, stored):
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

    def _share(
        self, slot: int, band: tuple[int, int], axis_size: int, stored: dict[int, Rows]
    ) -> bool:
        """Extend the rows of ``slot``, a result that is read after the layers, by this band's
        share.

        ``band`` is the range of the last result, whose axis has ``axis_size`` elements; the share
        is the same fraction of this slot. A result that no layer reads is cut along the axis of the
        last result. False if it cannot be cut. Adds the share to ``stored``.
        """
        sizes = self.program.slots[slot].sizes
        if slot not in self.rows:
            last_axis = stored[self.layers[-1].outputs[0]][0]
            if last_axis >= len(sizes) or sizes[last_axis] != axis_size:
                return False
            self.rows[slot] = (last_axis, *band)
        axis, low, high = self.rows[slot]
        first, last = (sizes[axis] * boundary // axis_size for boundary in band)
        self.rows[slot] = (axis, min(low, first), max(high, last))
        stored[slot] = (axis, first, last)
        return True

    def _tile(self, each: Instruction) -> Tile | None:
        """Return the tile that computes the needed rows of a layer, and record which rows it reads.

        None if the layer reads a whole intermediate, or cuts one along several axes.
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
            if slot in inside and not self._extend_needed_rows(slot, *next(iter(box.items()))):
                return None
        return tile

    def _extend_needed_rows(self, slot: int, axis: int, box: tuple[int, int]) -> bool:
        """Extend the needed rows of ``slot`` to ``box``; False if they were needed along another
        axis.
        """
        earlier_axis, first, last = self.rows.get(slot, (axis, *box))
        self.rows[slot] = (axis, min(first, box[0]), max(last, box[1]))
        return earlier_axis == axis

    def _compute(self, layer: Instruction, tile: Tile) -> None:
        """Append the instruction that computes ``layer`` on ``tile``, with a Slice for each cut
        operand.
        """
        inputs = list(layer.inputs)
        for position, box in tile.inputs.items():
            for axis, bounds in box.items():
                inputs[position] = self._sliced_rows(
                    inputs[position], (axis, *bounds), layer.origin
                )
        slot = layer.outputs[0]
        axis, low, high = self.rows[slot]
        described = part_of(self.program.slots[slot], {axis: (low, high)})
        self.part[slot] = self.program.new_slot(described)
        outputs, attributes = (self.part[slot],), tile.attributes
        self.made.append(
            replace(layer, inputs=tuple(inputs), outputs=outputs, attributes=attributes)
        )

    def _store(self, layer: Instruction, stored: Mapping[int, Rows]) -> None:
        """Append a STORE of the band's share into the whole result, if ``stored`` lists the
        result.

        A band's share is empty if the result has fewer rows than there are bands.
        """
        slot = layer.outputs[0]
        if slot not in stored:
            return
        axis, first, last = stored[slot]
        if first == last:
            return
        source = self._sliced_rows(slot, (axis, first, last), layer.origin)
        box: dict[str, AttributeValue | DotDims] = {"axes": (axis,)}
        box |= {"starts": (first,), "stops": (last,)}
        self.made.append(Instruction(STORE, (source,), (slot,), box, (), layer.origin))

    def _sliced_rows(self, slot: int, rows: Rows, origin: str) -> int:
        """Return a slot with exactly ``rows`` of ``slot``; append a Slice if no slot has just these
        rows.
        """
        axis, low, high = rows
        source = self.part.get(slot, slot)
        full_size = 0, self.program.slots[slot].sizes[axis]
        first, last = self.rows[slot][1:] if slot in self.part else full_size
        if (low, high) == (first, last):
            return source
        sliced = self.program.new_slot(part_of(self.program.slots[slot], {axis: (low, high)}))
        attributes: dict[str, AttributeValue | DotDims] = {"axes": (axis,), "steps": (1,)}
        attributes |= {"starts": (low - first,), "ends": (high - first,)}
        self.made.append(Instruction("Slice", (source,), (sliced,), attributes, (), origin))
        return sliced


def _has_kernel(program: Program, band: Instruction) -> bool:
    """True if the kernel of the operator supports the band's sizes and can apply its epilogue."""
    instance, kernel = Instance(program, band), kernel_of(band.op)
    if kernel is None or kernel.refuse(instance) is not None:
        return False
    positions = [position for step in band.epilogue for position in step.operands if position >= 0]
    slots = (*(band.inputs[position] for position in positions), *band.outputs)
    shapes = [program.slots[slot].sizes for slot in slots]
    return not band.epilogue or all(
        kernel.supports_side_operand(instance, shape) for shape in shapes
    )
