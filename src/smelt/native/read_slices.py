"""Let loops read the elements of a Slice where they lie, instead of a copy of them.

    before   a = Slice(x)   b = Slice(x)   y = Map(a, b)
    after    y = Map(x, x), each read from a place on and with strides

So a stencil passes once over memory, and a Concat of slices, which is what ``roll`` is, copies each
element once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from smelt.native.fuse_elementwise import as_group
from smelt.native.kernels.fused import MAP, is_elementwise
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.movement import rows_of
from smelt.native.kernels.nest import row_major
from smelt.program.instruction import Instruction, Program

LOOPS = (MAP, "Concat")
MOST_HELD = 2
"""How many times as many bytes as the slice its source may have. It is kept until the loop runs,
while a slice of a few rows would let it go; what the caller owns is there anyway."""


def read_slices(program: Program) -> None:
    """Take out the slices, in place, that only loops read; those of bodies, too.

    An attribute ``view<n>`` of the loop holds the first element and the strides of input n, and
    ``reads`` the slots that its inputs stand for.
    """
    for body in program.bodies:
        read_slices(body.program)
    readers: dict[int, list[int]] = defaultdict(list)
    for index, step in enumerate(program.instructions):
        for slot in step.inputs:
            readers[slot].append(index)
    taken: dict[int, Instruction] = {
        step.outputs[0]: step
        for step in program.instructions
        if _may_be_read(program, step)
        and all(_walks(program, program.instructions[i]) for i in readers[step.outputs[0]])
    }
    program.instructions = [
        _reading(program, step, taken)
        for step in program.instructions
        if step.op != "Slice" or step.outputs[0] not in taken
    ]


def _may_be_read(program: Program, step: Instruction) -> bool:
    """True for a Slice by numbers of what this run computes or is given."""
    if step.op != "Slice" or step.finish or step.outputs[0] in program.outputs:
        return False
    source, result = program.slots[step.inputs[0]], program.slots[step.outputs[0]]
    if step.inputs[0] in program.constants or source.layout is not None:
        return False
    numbers = (*source.shape, *result.shape, *Instance(program, step).ints("starts"))
    if not all(isinstance(number, int) for number in numbers) or not result.nbytes:
        return False
    return step.inputs[0] in program.inputs or source.nbytes <= MOST_HELD * result.nbytes


def _walks(program: Program, step: Instruction) -> bool:
    """True for an instruction whose kernel goes by the strides of its inputs."""
    return step.op in LOOPS or is_elementwise(program, step)


def _reading(program: Program, step: Instruction, taken: dict[int, Instruction]) -> Instruction:
    if not any(slot in taken for slot in step.inputs):
        return step
    if step.op not in LOOPS:
        step = as_group([step])
    inputs, attributes = list(step.inputs), {**step.attributes, "reads": step.inputs}
    for position, slot in enumerate(step.inputs):
        if slot in taken:
            inputs[position] = taken[slot].inputs[0]
            attributes[f"view{position}"] = _view(program, taken[slot])
    return replace(step, inputs=tuple(inputs), attributes=attributes)


def _view(program: Program, step: Instruction) -> tuple[int, ...]:
    """The first element that a Slice takes, then its strides, in elements of the source."""
    instance = Instance(program, step)
    pairs = list(zip(rows_of(instance), row_major(instance.shape(0)), strict=True))
    first = sum(row * stride for (row, _), stride in pairs)
    return first, *(each * stride for (_, each), stride in pairs)
