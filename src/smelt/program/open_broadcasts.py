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


def spell_out_broadcasts(program: Program) -> None:
    """Insert Expands before elementwise instructions, in place, also in bodies."""
    done: list[Instruction] = []
    for instruction in program.instructions:
        for body in instruction.bodies:
            spell_out_broadcasts(body.program)
        if instruction.op in ELEMENTWISE:
            done += _expands(program, instruction)
        done.append(instruction)
    program.instructions = done


def _expands(program: Program, instruction: Instruction) -> list[Instruction]:
    """Return one Expand per operand that may broadcast, and let ``instruction`` read their
    results."""
    shapes = {n: program.slots[n].shape for n in instruction.inputs if n >= 0}
    made = program.slots[instruction.outputs[0]].shape
    rank = len(made)
    known = {str(dim) for shape in shapes.values() for dim in shape if not isinstance(dim, int)}
    against = tuple(
        dim for shape in shapes.values() for dim in (*(1,) * (rank - len(shape)), *shape)
    )
    found: dict[int, Instruction] = {}
    for number, shape in shapes.items():
        if _fits(shape, made, known) or len(shape) > rank:
            continue
        goal = program.new_slot(replace(program.slots[number], shape=made))
        attributes = {"against": against}
        found[number] = Instruction(
            "Expand", (number,), (goal,), attributes, origin=instruction.origin
        )
    instruction.inputs = tuple(found[n].outputs[0] if n in found else n for n in instruction.inputs)
    return list(found.values())


def _fits(shape: Sequence[Dim], made: Sequence[Dim], known: Set[str]) -> bool:
    """True if it is known which dims have one element.

    It is not known for a symbol that meets a number, or a result size that no operand has.
    """
    pairs = zip(reversed(shape), reversed(made), strict=False)
    return not any(
        isinstance(dim, ir.SymbolicDim) and str(dim) != str(whole) and str(whole) not in known
        for dim, whole in pairs
    )
