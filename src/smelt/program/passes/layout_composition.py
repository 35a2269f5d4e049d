"""Merges chains of Transposes and of Reshapes into one, and removes those without effect.

    before   t = Transpose<perm=(2, 0, 1)>(a)   y = Transpose<perm=(1, 2, 0)>(t)   z = Neg(y)
    after    z = Neg(a)

A Transpose that moves only dims of size 1 becomes a Reshape, which is a view. A Concat of all
slices of a tensor becomes the tensor. An output that a Reshape to the same sizes writes is written
by the instruction before. Dead code elimination removes what is left unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from smelt.ir.same_shape import same_dim
from smelt.ir.symbolic_dims.dims import is_symbolic
from smelt.program.instruction import Dim, Instruction, Program
from smelt.program.run_sizes import same

_LAYOUT = ("Transpose", "Reshape")


def run(program: Program) -> bool:
    """Merge chains of Transposes and of Reshapes in ``program``, but not in bodies; True if
    anything changed."""
    producers: dict[int, Instruction] = {}
    replacement: dict[int, int] = {}  # by a slot that is no longer written
    renamed: dict[int, int] = {}  # slots that are written under the name of an output
    instructions: list[Instruction] = []
    changed = False
    for instruction in program.instructions:
        instruction.inputs = tuple(replacement.get(slot, slot) for slot in instruction.inputs)
        composed, source = _composed_and_source(program, instruction, producers)
        changed |= composed is not instruction
        if source is not None:
            output = composed.outputs[0]
            if _may_stand_for(program, source, output):
                replacement[output] = source
                changed = True
                continue
            if source not in renamed and _may_be_written_as(program, source, output):
                renamed[source] = output
                changed = True
                continue
        instructions.append(composed)
        if composed.op in (*_LAYOUT, "Slice"):
            producers[composed.outputs[0]] = composed
    for instruction in instructions if renamed else ():
        instruction.inputs = tuple(renamed.get(slot, slot) for slot in instruction.inputs)
        instruction.outputs = tuple(renamed.get(slot, slot) for slot in instruction.outputs)
    program.instructions = instructions
    program.outputs = tuple(replacement.get(slot, slot) for slot in program.outputs)
    return changed


def _composed_and_source(
    program: Program, instruction: Instruction, producers: Mapping[int, Instruction]
) -> tuple[Instruction, int | None]:
    """Return ``(composed, source)``: ``instruction`` merged with those before it, and its source.

    ``source`` is the slot whose elements ``composed`` returns unchanged; None if it changes them.
    """
    if instruction.op in _LAYOUT:
        composed = _composed(program, instruction, producers)
        return composed, composed.inputs[0] if _keeps_sizes(program, composed) else None
    if instruction.op == "Concat":
        return instruction, _joined_source(program, instruction, producers)
    return instruction, None


def _composed(
    program: Program, step: Instruction, producers: Mapping[int, Instruction]
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
    if step.op == "Transpose" and _keeps_long_dims_in_order(program, step):
        reshape = replace(step, op="Reshape", attributes={})
        return _composed(program, reshape, producers)
    return step


def _joined_source(
    program: Program, concat: Instruction, producers: Mapping[int, Instruction]
) -> int | None:
    """Return the slot whose slices along the axis a Concat joins in order; None if there is
    none."""
    axis, end, source = cast(int, concat.attributes["axis"]), 0, -1
    for slot in concat.inputs:
        part = producers.get(slot)
        if part is None or part.op != "Slice" or len(part.inputs) != 1:
            return None
        bounds = [part.attributes[name] for name in ("axes", "starts", "steps")]
        if not same(bounds, [(axis,), (end,), (1,)]) or source not in (-1, part.inputs[0]):
            return None
        size = program.slots[slot].shape[axis]
        if type(size) is not int:
            return None
        source, end = part.inputs[0], end + size
    return source if source >= 0 and same(program.slots[source].shape[axis], end) else None


def _keeps_long_dims_in_order(program: Program, step: Instruction) -> bool:
    """True if the Transpose ``step`` moves dims of size 1 alone, so that elements stay in place."""
    shape: tuple[Dim, ...] = program.slots[step.inputs[0]].shape
    other_dims = [dim for dim in step.ints("perm") if not _equal(shape[dim], 1)]
    return other_dims == sorted(other_dims)


def _keeps_sizes(program: Program, step: Instruction) -> bool:
    """True if ``step`` is a Reshape to the sizes of its operand, which it then need not write.

    It may be a Transpose that became a Reshape in ``_composed``.
    """
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

    False if ``output`` is an output of the program: its name is kept, and a source that is an input
    or a constant would have to be copied.
    """
    a, b = (replace(program.slots[slot], name="", shape=()) for slot in (source, output))
    return a == b and output not in program.outputs


def _may_be_written_as(program: Program, source: int, output: int) -> bool:
    """True if the instruction that writes ``source`` may write the ``output`` directly."""
    a, b = (replace(program.slots[slot], name="", shape=()) for slot in (source, output))
    fixed = (*program.inputs, *program.constants, *program.outputs)
    return a == b and output in program.outputs and source not in fixed
