"""Sizes of operands that have to fit together, where a run could be told others.

Shape inference takes operators at their word: of ``MatMul(x[3,N], y[M,2])`` it says ``[3,2]``, and
of a ``Reshape(x[N])`` to four elements ``[4]``. A kernel then would read beyond ``y`` and ``x`` in
a run in which ``M`` is less than ``N``, or ``N`` than 4. So what does not follow from the bounds of
sizes is a condition of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from smelt.errors import Unsupported
from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.agreeing_sizes import AT_MOST, EQUAL, Shape, broadcast
from smelt.program.condition import Condition
from smelt.program.instruction import Instruction, Program
from smelt.program.run_sizes import Size, Undecided, maybe_one, told

OPTIONAL = ("If", "Loop")
"""Instructions whose bodies need not run."""


def note_conditions(program: Program, *, certain: bool = True) -> None:
    """Fill in ``conditions``: what has to hold of the sizes of a run, each once, and in bodies of
    control flow what has to hold whenever they run.

    Raises Unsupported E201 for operands that fit together in no run, unless it is not ``certain``
    that the program runs: a branch may be there for other sizes, and a loop make no round.
    """
    found: dict[str, Condition] = {}
    for instruction in program.instructions:
        for each in _conditions(program, instruction):
            if each.fails and certain:
                raise _never(instruction, each)
            if not each.holds:
                found.setdefault(each.broken, each)
        for body in instruction.bodies:
            note_conditions(body.program, certain=certain and instruction.op not in OPTIONAL)
    program.conditions = tuple(found.values())


def _conditions(program: Program, instruction: Instruction) -> Iterator[Condition]:
    equal = broadcast if instruction.op in ELEMENTWISE else EQUAL.get(instruction.op)
    fits = AT_MOST.get(instruction.op)
    read = [_shape(program, slot) for slot in instruction.inputs]
    made = [_shape(program, slot) for slot in instruction.outputs]
    for size in (size for shape in made for size in shape if isinstance(size, Size)):
        yield Condition(0, size, or_less=True)
    try:
        for one, other in equal(instruction, read, made) if equal else ():
            yield Condition(one, other, or_one=instruction.op == "Expand" and maybe_one(one))
        for one, other in fits(instruction, read, made) if fits else ():
            yield Condition(one, other, or_less=True)
    except Undecided:
        return  # the kernel is refused for the same question


def _shape(program: Program, slot: int) -> Shape:
    """The shape of a slot; none has no dims, as an absent operand has none."""
    return cast("Shape", program.slots[slot].shape) if slot >= 0 else ()


def _never(instruction: Instruction, condition: Condition) -> Unsupported:
    relation = "no more than" if condition.or_less else "equal to"
    return Unsupported(
        "E201",
        f"the operands of {instruction.op} do not fit together",
        at=f"node {instruction.origin!r}",
        why=f"{told(condition.size)} is never {relation} {told(condition.other)}",
        fix="give its operands sizes that its operator takes",
    )
