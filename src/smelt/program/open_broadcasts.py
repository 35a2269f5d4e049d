"""Makes broadcasts explicit that are decided at run time: ``x[N] + y[M]``.

Kernels know at compile time which operand dims have one element. Where that is unknown, an Expand
before the kernel broadcasts the operand to the shape of the result.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import onnx_ir as ir

from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.instruction import Dim, Instruction, Program


def insert_expands(program: Program) -> None:
    """Insert Expands before elementwise instructions, in place, also in bodies."""
    done: list[Instruction] = []
    for instruction in program.instructions:
        for body in instruction.bodies:
            insert_expands(body.program)
        if instruction.op in ELEMENTWISE:
            done += _expands(program, instruction)
        done.append(instruction)
    program.instructions = done


def _expands(program: Program, instruction: Instruction) -> list[Instruction]:
    """Make ``instruction`` read expanded operands, and return the Expands, one per operand that may
    broadcast.

    The attribute ``against`` of an Expand has the dims of all operands, aligned at the last one: a
    run computes the sizes of the result from them.
    """
    shapes = {n: program.slots[n].shape for n in instruction.inputs if n >= 0}
    result_shape = program.slots[instruction.outputs[0]].shape
    rank = len(result_shape)
    known = {str(dim) for shape in shapes.values() for dim in shape if not isinstance(dim, int)}
    all_dims = tuple(
        dim for shape in shapes.values() for dim in (*(1,) * (rank - len(shape)), *shape)
    )
    expand_of: dict[int, Instruction] = {}
    for slot, shape in shapes.items():
        if _has_known_ones(shape, result_shape, known) or len(shape) > rank:
            continue
        expanded = program.new_slot(replace(program.slots[slot], shape=result_shape))
        attributes = {"against": all_dims}
        expand_of[slot] = Instruction(
            "Expand", (slot,), (expanded,), attributes, origin=instruction.origin
        )
    instruction.inputs = tuple(
        expand_of[n].outputs[0] if n in expand_of else n for n in instruction.inputs
    )
    return list(expand_of.values())


def _has_known_ones(shape: Sequence[Dim], result_shape: Sequence[Dim], known: Set[str]) -> bool:
    """True if it is known which dims of ``shape`` have one element.

    It is unknown for a symbol that meets a number, or a result size that no operand has.
    """
    pairs = zip(reversed(shape), reversed(result_shape), strict=False)
    return not any(
        isinstance(dim, ir.SymbolicDim)
        and str(dim) != str(result_dim)
        and str(result_dim) not in known
        for dim, result_dim in pairs
    )
