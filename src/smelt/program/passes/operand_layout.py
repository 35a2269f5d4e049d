"""Transposes operands of a DotGeneral whose layout no matrix product reads directly.

    before   y = DotGeneral<lhs_contracting=(0, 2), rhs_contracting=(0, 1)>(a[K,M,L], b[K,L,N])
    after    t[M,K,L] = Transpose<perm=(1, 0, 2)>(a)
             y = DotGeneral<lhs_contracting=(1, 2), rhs_contracting=(0, 1)>(t, b)

The order of the contracting dims is chosen so that the fewest elements are moved. DotGenerals
without contracting dims are left alone.
"""

from __future__ import annotations

from dataclasses import replace

from smelt.operators.contracting_order import Side, contracting_order
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction, Program


def run(program: Program) -> bool:
    """Transpose operands that no matrix product reads directly; True if one was, or an order
    changed."""
    before, program.instructions = program.instructions, []
    changed = False
    for instruction in before:
        dims = instruction.attributes.get("dims")
        if instruction.op == "DotGeneral" and isinstance(dims, DotDims) and dims.lhs_contracting:
            readable = _with_readable_operands(program, instruction, dims)
            if readable != dims:
                changed = True
                instruction.attributes = {**instruction.attributes, "dims": readable}
        program.instructions.append(instruction)
    return changed


def _with_readable_operands(program: Program, dot: Instruction, dims: DotDims) -> DotDims:
    """Return the new dimension numbers of ``dot``, after emitting the transposes that they need."""
    lhs, rhs = (program.slots[slot].shape for slot in dot.inputs)
    sides = Side(lhs, dims.lhs_free(len(lhs))), Side(rhs, dims.rhs_free(len(rhs)))
    pairs = zip(dims.lhs_contracting, dims.rhs_contracting, strict=True)
    left, right = zip(*contracting_order(*sides, list(pairs)), strict=True)
    dims = replace(dims, lhs_contracting=left, rhs_contracting=right)
    if not sides[0].is_readable(left):
        perm = (*dims.lhs_batch, *sides[0].free, *left)
        _transpose(program, dot, 0, perm)
        batch, left = (tuple(map(perm.index, group)) for group in (dims.lhs_batch, left))
        dims = replace(dims, lhs_batch=batch, lhs_contracting=left)
    if not sides[1].is_readable(right):
        perm = (*dims.rhs_batch, *right, *sides[1].free)
        _transpose(program, dot, 1, perm)
        batch, right = (tuple(map(perm.index, group)) for group in (dims.rhs_batch, right))
        dims = replace(dims, rhs_batch=batch, rhs_contracting=right)
    return dims


def _transpose(program: Program, dot: Instruction, side: int, perm: tuple[int, ...]) -> None:
    """Transpose an operand of ``dot`` by ``perm``."""
    slot = program.slots[dot.inputs[side]]
    name = f"{program.slots[dot.outputs[0]].name}/transposed"
    shape = tuple(slot.shape[dim] for dim in perm)
    transposed = program.new_slot(replace(slot, shape=shape, name=name))
    step = Instruction(
        "Transpose", (dot.inputs[side],), (transposed,), {"perm": perm}, (), dot.origin
    )
    program.instructions.append(step)
    dot.inputs = (transposed, dot.inputs[1]) if side == 0 else (dot.inputs[0], transposed)
