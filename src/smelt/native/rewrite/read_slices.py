"""Let loops read a Slice's elements from its source, without a copy.

    before   a = Slice(x)   b = Slice(x)   y = Map(a, b)
    after    y = Map(x, x), each read with an offset and strides

So a stencil passes over memory once, and a Concat of slices (``roll``) copies each element once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from smelt.native.kernels.fused import MAP, is_elementwise
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.movement import rows_of
from smelt.native.kernels.nest import row_major
from smelt.native.rewrite.fuse_elementwise import as_group
from smelt.program.instruction import Instruction, Program

LOOPS = (MAP, "Concat")
"""Instructions whose kernels are loops that read each input by an offset and strides."""

MOST_BYTES_RATIO = 2
"""The largest ratio of source bytes to slice bytes. The source stays live until the loop runs,
while a slice of a few rows would free it. Sources that the caller owns are exempt."""


def read_slices(program: Program) -> None:
    """Remove each Slice whose readers are all loops, also in bodies; they then read its source.

    Such a loop gets the attribute ``view<n>``, the offset and the strides by which it reads input n
    from the source, and ``reads``, its inputs before the change: the slots of removed Slices.
    """
    for body in program.bodies:
        read_slices(body.program)
    readers: dict[int, list[int]] = defaultdict(list)
    for index, step in enumerate(program.instructions):
        for slot in step.inputs:
            readers[slot].append(index)
    removed: dict[int, Instruction] = {
        step.outputs[0]: step
        for step in program.instructions
        if _is_readable_in_place(program, step)
        and all(
            _reads_by_strides(program, program.instructions[i]) for i in readers[step.outputs[0]]
        )
    }
    program.instructions = [
        _with_sliced_reads(program, step, removed)
        for step in program.instructions
        if step.op != "Slice" or step.outputs[0] not in removed
    ]


def _is_readable_in_place(program: Program, step: Instruction) -> bool:
    """True for a Slice with constant sizes whose source is a program input, or is at most
    ``MOST_BYTES_RATIO`` times as large.
    """
    if step.op != "Slice" or step.epilogue or step.outputs[0] in program.outputs:
        return False
    source, result = program.slots[step.inputs[0]], program.slots[step.outputs[0]]
    if step.inputs[0] in program.constants or source.layout is not None:
        return False
    numbers = (*source.shape, *result.shape, *Instance(program, step).ints("starts"))
    if not all(isinstance(number, int) for number in numbers) or not result.nbytes:
        return False
    return step.inputs[0] in program.inputs or source.nbytes <= MOST_BYTES_RATIO * result.nbytes


def _reads_by_strides(program: Program, step: Instruction) -> bool:
    """True if the kernel of the instruction reads its inputs by strides."""
    return step.op in LOOPS or is_elementwise(program, step)


def _with_sliced_reads(
    program: Program, step: Instruction, removed: dict[int, Instruction]
) -> Instruction:
    """Return ``step`` with each removed Slice's source as its input.

    ``removed`` maps the result slot of a Slice to the Slice.
    """
    if not any(slot in removed for slot in step.inputs):
        return step
    if step.op not in LOOPS:
        step = as_group([step])
    inputs, attributes = list(step.inputs), {**step.attributes, "reads": step.inputs}
    for position, slot in enumerate(step.inputs):
        if slot in removed:
            inputs[position] = removed[slot].inputs[0]
            attributes[f"view{position}"] = _view(program, removed[slot])
    return replace(step, inputs=tuple(inputs), attributes=attributes)


def _view(program: Program, step: Instruction) -> tuple[int, ...]:
    """Return the offset of a Slice's first element and its strides, in elements of the source.

    Along each axis the Slice reads rows start, start + step, ...: the offset is the sum of
    start * stride over the axes, and the stride of an axis is step * stride.
    """
    instance = Instance(program, step)
    rows, strides = rows_of(instance), row_major(instance.shape(0))
    offset = sum(start * stride for (start, _), stride in zip(rows, strides, strict=True))
    return offset, *(every * stride for (_, every), stride in zip(rows, strides, strict=True))
