"""Split an instruction into bands along an axis of its result.

What a band of the result needs of each operand is said once for each operator, in ``REGIONS``: a
window with its stride and dilation reads a halo beyond its own rows, and at the border of the
image the padding is what is left of it. Each band is the operator itself on smaller operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from smelt.program.instruction import AttributeValue, DotDims, Instruction, Program, Slot
from smelt.program.staging import BAND, JOIN
from smelt.program.storage import NeedsOf, no_needs

Box: TypeAlias = dict[int, tuple[int, int]]
"""The part of a tensor: start and stop by axis, whole along the others."""


@dataclass
class Region:
    """What one band reads: a box of each operand by position, and attributes that differ."""

    boxes: dict[int, Box] = field(default_factory=dict)
    attributes: dict[str, AttributeValue | DotDims] = field(default_factory=dict)


RegionOf: TypeAlias = Callable[[Program, Instruction, int, int, int], Region | None]
"""The region for elements ``start`` to ``stop`` along ``axis`` of the first result.

None where a band of the result is not the operator itself on parts of the operands.
"""


def elementwise(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """The same elements of each operand; the only one where it is broadcast."""
    rank = len(program.slots[instruction.outputs[0]].shape)
    region = Region()
    for position, slot in enumerate(instruction.inputs):
        shape = program.slots[slot].shape if slot >= 0 else ()
        own = axis - (rank - len(shape))
        if own >= 0 and shape[own] != 1:
            region.boxes[position] = {own: (start, stop)}
    return region


def convolution(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Images of x; filters of w and their bias; rows of x with the halo of the window."""
    if axis == 0:
        return Region({0: {0: (start, stop)}})
    if axis > 1:
        return _window(program, instruction, axis, start, stop)
    group = instruction.attributes["group"]
    filters = program.slots[instruction.inputs[1]].sizes
    assert isinstance(group, int)
    each = filters[0] // group
    region = Region({1: {0: (start, stop)}})
    if len(instruction.inputs) > 2 and instruction.inputs[2] >= 0:
        region.boxes[2] = {0: (start, stop)}
    if group > 1:
        if start % each or stop % each:
            return None
        channels = filters[1]
        region.boxes[0] = {1: (start // each * channels, stop // each * channels)}
        region.attributes["group"] = (stop - start) // each
    return region


def pooling(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Images, channels, or rows with the halo of the window; no places of maxima."""
    if len(instruction.outputs) > 1:
        return None
    if axis < 2:
        return Region({0: {axis: (start, stop)}})
    return _window(program, instruction, axis, start, stop)


def _window(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Rows ``start`` to ``stop`` of windows: what they cover, and the padding that is left.

    A window over padding alone has no rows to read, and one that reaches beyond the padding
    (``ceil_mode``) counts its elements otherwise: neither is split.
    """
    kernel, strides, dilations, pads = (
        instruction.ints(name) for name in ("kernel_shape", "strides", "dilations", "pads")
    )
    place, rank = axis - 2, len(kernel)
    size = program.slots[instruction.inputs[0]].sizes[axis]
    count = program.slots[instruction.outputs[0]].sizes[axis]
    reach = dilations[place] * (kernel[place] - 1) + 1
    if (count - 1) * strides[place] + reach > pads[place] + size + pads[rank + place]:
        return None
    first = start * strides[place] - pads[place]
    end = (stop - 1) * strides[place] - pads[place] + reach
    low, high = max(first, 0), min(end, size)
    if low >= high:
        return None
    left = list(pads)
    left[place], left[rank + place] = low - first, end - high
    return Region({0: {axis: (low, high)}}, {"pads": tuple(left)})


def product(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """The batch, rows or columns of a DotGeneral."""
    dims = instruction.attributes["dims"]
    assert isinstance(dims, DotDims)
    lhs, rhs = (len(program.slots[slot].shape) for slot in instruction.inputs[:2])
    batch, rows = len(dims.lhs_batch), dims.lhs_free(lhs)
    if axis < batch:
        box = (start, stop)
        return Region({0: {dims.lhs_batch[axis]: box}, 1: {dims.rhs_batch[axis]: box}})
    if axis < batch + len(rows):
        return Region({0: {rows[axis - batch]: (start, stop)}})
    return Region({1: {dims.rhs_free(rhs)[axis - batch - len(rows)]: (start, stop)}})


ELEMENTWISE = (
    *("Abs", "Add", "And", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor"),
    *("Gelu", "Greater", "HardSigmoid", "HardSwish", "LeakyRelu", "Less", "Log", "Max", "Min"),
    *("Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin"),
    *("Softplus", "Sqrt", "Sub", "Swish", "Tanh", "Where", "Xor"),
)
REGIONS: Mapping[str, RegionOf] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(("Conv", "smelt.c::ConvRelu"), convolution),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pooling),
    "DotGeneral": product,
}
"""What a band reads, by instruction; a target adds its own operators."""


def split(
    program: Program,
    instruction: Instruction,
    axis: int,
    size: int,
    regions: Mapping[str, RegionOf] = REGIONS,
) -> list[Instruction] | None:
    """``instruction`` as bands of ``size`` along ``axis``: Bands of operands, the operator on them,
    and at last a Join. None if it cannot be. New slots are added to ``program``."""
    region_of = regions.get(instruction.op)
    whole = program.slots[instruction.outputs[0]]
    if region_of is None or axis >= len(whole.shape) or size < 1 or len(instruction.outputs) != 1:
        return None
    length = whole.sizes[axis]
    starts = tuple(range(0, length, size))
    stops = tuple(min(start + size, length) for start in starts)
    found = [
        region_of(program, instruction, axis, *band) for band in zip(starts, stops, strict=True)
    ]
    if len(starts) < 2 or any(region is None for region in found):
        return None
    made: list[Instruction] = []
    parts = []
    for start, stop, region in zip(starts, stops, found, strict=True):
        assert region is not None
        inputs = list(instruction.inputs)
        for position, box in region.boxes.items():
            inputs[position] = _band(program, made, inputs[position], box, instruction.origin)
        slot = program.slots[instruction.outputs[0]]
        parts.append(program.new_slot(_part(slot, {axis: (start, stop)})))
        attributes = {**instruction.attributes, **region.attributes}
        made.append(
            replace(instruction, inputs=tuple(inputs), outputs=(parts[-1],), attributes=attributes)
        )
    joined: dict[str, AttributeValue | DotDims] = {"axis": axis, "starts": starts}
    made.append(
        Instruction(JOIN, tuple(parts), instruction.outputs, joined, (), instruction.origin)
    )
    return made


def _band(program: Program, made: list[Instruction], slot: int, box: Box, origin: str) -> int:
    part = program.new_slot(_part(program.slots[slot], box))
    starts, stops = zip(*box.values(), strict=True)
    attributes = {"axes": tuple(box), "starts": starts, "stops": stops}
    made.append(Instruction(BAND, (slot,), (part,), attributes, (), origin))
    return part


def _part(slot: Slot, box: Box) -> Slot:
    shape = list(slot.shape)
    for axis, (start, stop) in box.items():
        shape[axis] = stop - start
    name = f"{slot.name}[{', '.join(f'{a}: {b}-{c}' for a, (b, c) in box.items())}]"
    return replace(slot, shape=tuple(shape), name=name)


def tile_to_fit(
    program: Program,
    budget: int,
    axes: Sequence[int] = (2, 1),
    regions: Mapping[str, RegionOf] = REGIONS,
    needs_of: NeedsOf = no_needs,
) -> Program:
    """``program`` with each instruction that touches more than ``budget`` bytes in bands that do
    not, as large as fit, along the first of ``axes`` that is enough.

    An instruction that no axis makes fit stays whole.
    """
    tiled = replace(program, slots=list(program.slots), instructions=[])
    for instruction in program.instructions:
        tiled.instructions += _fitting(tiled, instruction, budget, axes, regions, needs_of)
    return tiled


def _fitting(
    program: Program,
    instruction: Instruction,
    budget: int,
    axes: Sequence[int],
    regions: Mapping[str, RegionOf],
    needs_of: NeedsOf,
) -> list[Instruction]:
    def touched(each: Instruction) -> int:
        slots = {slot for slot in (*each.inputs, *each.outputs) if slot >= 0}
        return sum(program.slots[slot].nbytes for slot in slots) + needs_of(each).workspace

    if touched(instruction) <= budget or instruction.op not in regions:
        return [instruction]
    for axis in axes:
        shape = program.slots[instruction.outputs[0]].sizes
        if axis >= len(shape):
            continue
        low, high, best = 1, shape[axis] - 1, 0
        while low <= high:
            size = (low + high) // 2
            draft = replace(program, slots=list(program.slots))
            bands = split(draft, instruction, axis, size, regions)
            computing = [each for each in bands or () if each.op not in (BAND, JOIN)]
            if computing and _most(draft, computing, needs_of) <= budget:
                best, low = size, size + 1
            else:
                high = size - 1
        if best:
            bands = split(program, instruction, axis, best, regions)
            assert bands is not None
            return bands
    return [instruction]


def _most(program: Program, instructions: Sequence[Instruction], needs_of: NeedsOf) -> int:
    return max(
        sum(
            program.slots[slot].nbytes
            for slot in {s for s in (*each.inputs, *each.outputs) if s >= 0}
        )
        + needs_of(each).workspace
        for each in instructions
    )
