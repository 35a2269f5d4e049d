"""Conditions on operand sizes, for programs whose sizes are known only at run time.

Shape inference trusts operators: for ``MatMul(x[3,N], y[M,2])`` it infers ``[3,2]``, and for a
``Reshape(x[N])`` to four elements ``[4]``. A kernel would read beyond ``y`` and ``x`` in a run with
M < N, or N < 4. So what does not follow from the bounds of sizes becomes a condition that each run
checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from smelt.errors import Unsupported, UsageError
from smelt.ir.dim_texts import symbolic_dim
from smelt.ir.size_constraints import sides_of
from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.agreeing_sizes import AT_MOST, EQUAL, Shape, broadcast
from smelt.program.condition import Condition
from smelt.program.instruction import Instruction, Program, RunSize
from smelt.program.run_sizes import Size, Undecided, maybe_one, told
from smelt.program.size_expressions import number_in

OPTIONAL = ("If", "Loop")
"""Instructions whose bodies may not run."""


def note_conditions(program: Program, *, certain: bool = True) -> None:
    """Add to ``conditions`` of ``program`` and its bodies what must hold of the sizes of a run.

    Raises Unsupported E201 for operands that fit in no run, unless it is not ``certain`` that the
    program runs: a branch may serve other sizes, and a loop may run no iteration.
    """
    found = {each.broken: each for each in program.conditions}
    for instruction in program.instructions:
        for each in _conditions(program, instruction):
            if each.fails and certain:
                raise _never(instruction, each)
            if not each.holds:
                found.setdefault(each.broken, each)
        for body in instruction.bodies:
            note_conditions(body.program, certain=certain and instruction.op not in OPTIONAL)
    program.conditions = tuple(found.values())


def constraint_conditions(
    constraints: Iterable[str], given: Iterable[RunSize]
) -> tuple[Condition, ...]:
    """Return the conditions that ``constraints`` such as ``S % 4 == 0`` put on the sizes of a run.

    Raises UsageError E633 for a constraint that no size within the bounds keeps.
    """
    sizes = {each.name: each.size for each in given}
    found: list[Condition] = []
    for text in constraints:
        left, relation, right = sides_of(text)
        one, other = (number_in(symbolic_dim(side), sizes) for side in (left, right))
        if not (isinstance(one, int | Size) and isinstance(other, int | Size)):
            continue
        if relation == ">=":
            one, other = other, one
        condition = Condition(one, other, or_less=relation != "==")
        if condition.fails:
            bounds = ", ".join(f"{name}={size.low}..{size.high}" for name, size in sizes.items())
            raise UsageError(
                "E633",
                f"no size within {bounds} keeps {text}",
                why=f"the function was traced with {text}",
                fix="give other bounds, or trace without this constraint",
            )
        if not condition.holds:
            found.append(condition)
    return tuple(found)


def _conditions(program: Program, instruction: Instruction) -> Iterator[Condition]:
    """Yield the conditions of ``instruction``: result sizes >= 0, and sizes that must agree."""
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
    """Return the shape of a slot; () for an absent operand."""
    return cast("Shape", program.slots[slot].shape) if slot >= 0 else ()


def _never(instruction: Instruction, condition: Condition) -> Unsupported:
    """Return the error for operand sizes that violate ``condition`` in every run."""
    relation = "no more than" if condition.or_less else "equal to"
    return Unsupported(
        "E201",
        f"the operands of {instruction.op} do not fit together",
        at=f"node {instruction.origin!r}",
        why=f"{told(condition.size)} is never {relation} {told(condition.other)}",
        fix="give its operands sizes that its operator takes",
    )
