"""The boxes of operands that an operator reads for a band of its result, one function per operator.

A band is a part of the result between two positions of one axis. The operator itself computes it
from smaller operands. A convolution reads a halo beyond the rows of the band, and keeps the padding
only at the border of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.chips.layouts import RELAYOUT
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program

Box: TypeAlias = dict[int, tuple[int, int]]
"""A sub-tensor: start and stop by axis, whole along other axes."""


@dataclass
class Region:
    """The operands of one band: the box of each operand by position (whole if it has none), and
    the attributes in which the band's operator differs from the original one.
    """

    boxes: dict[int, Box] = field(default_factory=dict)
    attributes: dict[str, AttributeValue | DotDims] = field(default_factory=dict)


RegionOf: TypeAlias = Callable[[Program, Instruction, int, int, int], Region | None]
"""Returns the region for elements ``start`` to ``stop`` along ``axis`` of the first result.

None if the band is not the operator itself on parts of the operands.
"""


def elementwise(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of elements ``start`` to ``stop``; an operand that broadcasts along
    ``axis`` is read whole.
    """
    rank = len(program.slots[instruction.outputs[0]].shape)
    region = Region()
    for position, slot in enumerate(instruction.inputs):
        shape = program.slots[slot].shape if slot >= 0 else ()
        operand_axis = axis - (rank - len(shape))
        if operand_axis >= 0 and shape[operand_axis] != 1:
            region.boxes[position] = {operand_axis: (start, stop)}
    return region


def convolution(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of a Conv.

    A band along axis 0 reads some images of x, along axis 1 some filters with their bias, along a
    spatial axis some rows of x with the halo. None if the band cuts a group of filters, or if a
    window lies in padding alone.
    """
    if axis == 0:
        return Region({0: {0: (start, stop)}})
    if axis > 1:
        return _window(program, instruction, axis, start, stop)
    group = instruction.attributes["group"]
    filters = program.slots[instruction.inputs[1]].sizes
    assert isinstance(group, int)
    group_filters = filters[0] // group
    region = Region({1: {0: (start, stop)}})
    if len(instruction.inputs) > 2 and instruction.inputs[2] >= 0:
        region.boxes[2] = {0: (start, stop)}
    if group > 1:
        if start % group_filters or stop % group_filters:
            return None
        channels = filters[1]
        region.boxes[0] = {1: (start // group_filters * channels, stop // group_filters * channels)}
        region.attributes["group"] = (stop - start) // group_filters
    return region


def pooling(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of a pooling: images or channels of x, or rows of x with the halo.

    None if there is a second result, or if a window lies in padding alone.
    """
    if len(instruction.outputs) > 1:
        return None
    if axis < 2:
        return Region({0: {axis: (start, stop)}})
    return _window(program, instruction, axis, start, stop)


def _window(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of windows ``start`` to ``stop``: the rows that they cover, and their
    padding.

    None for windows over padding alone, and for windows beyond the padding (``ceil_mode``), which
    count elements differently.
    """
    kernel, strides, dilations, pads = (
        instruction.ints(name) for name in ("kernel_shape", "strides", "dilations", "pads")
    )
    spatial, rank = axis - 2, len(kernel)
    size = program.slots[instruction.inputs[0]].sizes[axis]
    count = program.slots[instruction.outputs[0]].sizes[axis]
    window_extent = dilations[spatial] * (kernel[spatial] - 1) + 1
    if (count - 1) * strides[spatial] + window_extent > pads[spatial] + size + pads[rank + spatial]:
        return None
    first = start * strides[spatial] - pads[spatial]
    end = (stop - 1) * strides[spatial] - pads[spatial] + window_extent
    low, high = max(first, 0), min(end, size)
    if low >= high:
        return None
    remaining = list(pads)
    remaining[spatial], remaining[rank + spatial] = low - first, end - high
    return Region({0: {axis: (low, high)}}, {"pads": tuple(remaining)})


def product(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of a DotGeneral: both operands for a batch, one of them for rows or
    columns.
    """
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


REGIONS: Mapping[str, RegionOf] = {
    **dict.fromkeys(sorted(ELEMENTWISE), elementwise),
    **dict.fromkeys(("Conv", "smelt.c::ConvRelu"), convolution),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pooling),
    "DotGeneral": product,
    RELAYOUT: elementwise,
}
"""Region function by instruction; a target adds its own operators."""
