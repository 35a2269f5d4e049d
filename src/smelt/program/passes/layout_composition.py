"""Merges chains of Transposes and of Reshapes into one, and removes those without effect.

    before   t = Transpose<perm=(2, 0, 1)>(a)   y = Transpose<perm=(1, 2, 0)>(t)   z = Neg(y)
    after    z = Neg(a)

A Transpose that moves only dims of size 1 becomes a Reshape, which is a view. A Concat of all
slices of a tensor becomes the tensor. Dead code elimination removes what is left unread.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from smelt.ir.dims import is_symbolic
from smelt.ir.same_shape import same_dim
from smelt.program.instruction import Dim, Instruction, Program
from smelt.program.run_sizes import same

_LAYOUT = ("Transpose", "Reshape")


def run(program: Program) -> bool:
    """Merge as far as possible; True if anything changed. Bodies are separate programs."""
    producers: dict[int, Instruction] = {}
    same: dict[int, int] = {}
    made: dict[int, int] = {}
    kept: list[Instruction] = []
    changed = False
    for instruction in program.instructions:
        if any(slot in same for slot in instruction.inputs):
            instruction.inputs = tuple(same.get(slot, slot) for slot in instruction.inputs)
        if instruction.op in _LAYOUT:
            found = _composed(program, instruction, producers)
            changed |= found is not instruction
            source, output = found.inputs[0], found.outputs[0]
            if _does_nothing(program, found) and _may_stand_for(program, source, output):
                same[output] = source
                changed = True
                continue
            kept.append(found)
            producers[output] = found
            continue
        if instruction.op == "Slice":
            producers[instruction.outputs[0]] = instruction
        if instruction.op == "Concat":
            whole, output = _whole(program, instruction, producers), instruction.outputs[0]
            if whole is not None and _may_stand_for(program, whole, output):
                same[output] = whole
                changed = True
                continue
            if whole is not None and whole not in made and _may_be_made(program, whole, output):
                made[whole] = output
                changed = True
                continue
        kept.append(instruction)
    for instruction in kept if made else ():
        instruction.inputs = tuple(made.get(slot, slot) for slot in instruction.inputs)
        instruction.outputs = tuple(made.get(slot, slot) for slot in instruction.outputs)
    program.instructions = kept
    program.outputs = tuple(same.get(slot, slot) for slot in program.outputs)
    return changed


def _composed(
    program: Program, step: Instruction, producers: dict[int, Instruction]
) -> Instruction:
    """Return ``step`` merged with the chain of the same operator before it."""
    before = producers.get(step.inputs[0])
    while before is not None and before.op == step.op:
        step = replace(step, inputs=before.inputs, last_use=())
        if step.op == "Transpose":
            inner = before.ints("perm")
            perm = tuple(inner[dim] for dim in step.ints("perm"))
            step = replace(step, attributes={**step.attributes, "perm": perm})
        before = producers.get(step.inputs[0])
    if step.op == "Transpose" and _moves_ones_only(program, step):
        reshape = replace(step, op="Reshape", attributes={})
        return _composed(program, reshape, producers)
    return step


def _whole(program: Program, joined: Instruction, producers: dict[int, Instruction]) -> int | None:
    """Return the slot of which a Concat joins all slices along its axis, in order, else None."""
    axis, end, source = cast(int, joined.attributes["axis"]), 0, -1
    for slot in joined.inputs:
        cut = producers.get(slot)
        if cut is None or cut.op != "Slice" or len(cut.inputs) != 1:
            return None
        places = [cut.attributes[name] for name in ("axes", "starts", "steps")]
        if places != [(axis,), (end,), (1,)] or source not in (-1, cut.inputs[0]):
            return None
        size = program.slots[slot].shape[axis]
        if type(size) is not int:
            return None
        source, end = cut.inputs[0], end + size
    return source if source >= 0 and program.slots[source].shape[axis] == end else None


def _moves_ones_only(program: Program, step: Instruction) -> bool:
    shape: tuple[Dim, ...] = program.slots[step.inputs[0]].shape
    moved = [dim for dim in step.ints("perm") if not _equal(shape[dim], 1)]
    return moved == sorted(moved)


def _does_nothing(program: Program, step: Instruction) -> bool:
    """True for a Reshape to the same sizes, which a Transpose without effect has become."""
    before, after = (program.slots[slot].shape for slot in (step.inputs[0], step.outputs[0]))
    if step.op != "Reshape" or len(before) != len(after):
        return False
    return all(_equal(x, y) for x, y in zip(before, after, strict=True))


def _equal(x: Dim, y: Dim) -> bool:
    """True if ``x`` equals ``y`` for all values of symbols and run-time sizes."""
    if is_symbolic(x) or is_symbolic(y):
        return same_dim(x, y)
    return same(x, y)


def _may_stand_for(program: Program, source: int, output: int) -> bool:
    """True if readers of ``output`` may read ``source``.

    False for outputs of the program: one that is an input or a constant would be copied, and names
    of outputs are kept.
    """
    a, b = (replace(program.slots[slot], name="", shape=()) for slot in (source, output))
    return a == b and output not in program.outputs


def _may_be_made(program: Program, source: int, output: int) -> bool:
    """True if the instruction that writes ``source`` may write the ``output`` directly."""
    a, b = (replace(program.slots[slot], name="", shape=()) for slot in (source, output))
    given = (*program.inputs, *program.constants, *program.outputs)
    return a == b and output in program.outputs and source not in given
