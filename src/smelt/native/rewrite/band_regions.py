"""The operand regions that a band of a result reads, for operators that ``tile_regions`` lacks.

A band is the elements ``start`` to ``stop`` along ``axis`` of the result. A ``Region`` maps each
input position to the ranges that the band reads of this input, by axis; inputs that it does not
list are read whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from smelt.program.chips.tile_regions import REGIONS, Region, RegionOf, convolution, elementwise
from smelt.program.instruction import Instruction, Program
from smelt.program.quantized import ADD, LOOKUP, MUL

IMAGE_ROWS = 2
"""The row axis of an image, along which a quantized convolution is cut."""


def _quantized_convolution_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of a quantized convolution for a band of image rows; None along other
    axes.
    """
    return convolution(program, instruction, axis, start, stop) if axis == IMAGE_ROWS else None


def _along_others(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of an operator that works along ``axis`` and all later axes, as Softmax
    does.

    None for a band along one of these axes.
    """
    first_axis = instruction.attributes["axis"]
    assert isinstance(first_axis, int)
    return Region({0: {axis: (start, stop)}}) if axis < first_axis else None


def _concat_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the same band of every operand of a Concat; None along the axis that it joins."""
    if axis == instruction.attributes["axis"]:
        return None
    return Region({position: {axis: (start, stop)} for position in range(len(instruction.inputs))})


def _resample_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the same band of the operand of a Resample; None along the resampled axis."""
    if axis == instruction.attributes["axis"]:
        return None
    return Region({0: {axis: (start, stop)}})


def _transpose_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the band of the operand, along the axis that the Transpose moves to ``axis``."""
    return Region({0: {instruction.ints("perm")[axis]: (start, stop)}})


def _slice_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the same band of the operand of a Slice; None along a sliced axis."""
    return None if axis in instruction.ints("axes") else Region({0: {axis: (start, stop)}})


def _reshape_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the same band of the operand of a Reshape, along the dim that it keeps as ``axis``.

    The Reshape keeps a dim if its size, and the product of the sizes before it, are those of
    ``axis``. None if there is no such dim.
    """
    before, after = (
        program.slots[n].sizes for n in (instruction.inputs[0], instruction.outputs[0])
    )
    for dim, size in enumerate(before):
        if size == after[axis] and prod(before[:dim]) == prod(after[:axis]):
            return Region({0: {dim: (start, stop)}})
    return None


def _transposed_convolution_region(
    program: Program, instruction: Instruction, axis: int, start: int, stop: int
) -> Region | None:
    """Return the region of a transposed convolution: the input rows that reach the band, and its
    pads.

    Those input rows also contribute to results outside of the band; the returned ``pads`` crop
    these. Input row i contributes to the rows ``i * step`` to ``i * step + reach - 1`` of the
    result before its pads are cropped.
    """
    kernel, strides, dilations, pads = (
        instruction.ints(name) for name in ("kernel_shape", "strides", "dilations", "pads")
    )
    dim, rank = axis - 2, len(kernel)
    if dim < 0:
        return None
    step, reach = strides[dim], dilations[dim] * (kernel[dim] - 1) + 1
    size = program.slots[instruction.inputs[0]].sizes[axis]
    # The band's rows in the result before its pads are cropped, the last one included.
    first, last = start + pads[dim], stop - 1 + pads[dim]
    # Input row i reaches the band if i * step + reach - 1 >= first and i * step <= last.
    low, high = max(0, -((reach - 1 - first) // step)), min(size, last // step + 1)
    begin = first - low * step
    end = (high - 1) * step + reach - 1 - last
    if low >= high or begin < 0 or end < 0:
        return None
    band_pads = list(pads)
    band_pads[dim], band_pads[rank + dim] = begin, end
    return Region({0: {axis: (low, high)}}, {"pads": tuple(band_pads)})


def with_side_operands(region_of: RegionOf) -> RegionOf:
    """Return a region function like ``region_of`` that also cuts the side operands of an epilogue.

    Axes of side operands are aligned at the end, as in broadcasting. A dim of size 1 is not cut.
    """

    def with_boxes(
        program: Program, instruction: Instruction, axis: int, start: int, stop: int
    ) -> Region | None:
        """Return ``region_of`` with the boxes of the side operands added."""
        region = region_of(program, instruction, axis, start, stop)
        rank = len(program.slots[instruction.outputs[0]].shape)
        for step in instruction.epilogue if region is not None else ():
            for position in step.operands:
                shape = program.slots[instruction.inputs[position]].shape if position >= 0 else ()
                own_axis = axis - rank + len(shape)
                if 0 <= own_axis < len(shape) and shape[own_axis] != 1:
                    assert region is not None
                    region.boxes[position] = {own_axis: (start, stop)}
        return region

    return with_boxes


BY_ELEMENT = ("QuantizeLinear", "DequantizeLinear", LOOKUP)
WINDOWED = {
    **REGIONS,
    "QLinearConv": _quantized_convolution_region,
    **dict.fromkeys(BY_ELEMENT, elementwise),
}
ROW_REGIONS: Mapping[str, RegionOf] = {
    op: with_side_operands(each) for op, each in WINDOWED.items()
}
"""Region functions for rows of images, quantized convolutions included."""

_MORE: Mapping[str, RegionOf] = {
    **dict.fromkeys((ADD, MUL), elementwise),
    **dict.fromkeys(("LayerNormalization", "Softmax"), _along_others),
    "Concat": _concat_region,
    "Resample": _resample_region,
    "Transpose": _transpose_region,
    "Slice": _slice_region,
    "Reshape": _reshape_region,
    "ConvTranspose": _transposed_convolution_region,
}
BAND_REGIONS: Mapping[str, RegionOf] = {
    **ROW_REGIONS,
    **{op: with_side_operands(each) for op, each in _MORE.items()},
}
"""Region functions for bands of tensors of any rank, along any axis."""
