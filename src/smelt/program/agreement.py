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
from smelt.ir.symbolic_dims.dim_texts import symbolic_dim
from smelt.ir.symbolic_dims.size_constraints import sides_of
from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.agreeing_sizes import AT_MOST, EQUAL, Shape, broadcast
from smelt.program.condition import Condition
from smelt.program.instruction import Instruction, Program, RunSize
from smelt.program.run_sizes import Size, Undecided, maybe_one, with_bounds
from smelt.program.size_expressions import number_in

OPTIONAL = ("If", "Loop")
"""Instructions whose bodies may not run."""


def note_conditions(program: Program, *, certain: bool = True) -> None:
    """Add to ``conditions`` of ``program`` and its bodies the conditions on the sizes of a run.

    Raises Unsupported E201 for operands that fit in no run, unless it is not ``certain`` that the
    program runs: a branch may serve other sizes, and a loop may run no iteration.
    """
    conditions = {condition.violation: condition for condition in program.conditions}
    for instruction in program.instructions:
        for condition in _conditions(program, instruction):
            if condition.fails and certain:
                raise _unfit_operands(instruction, condition)
            if not condition.holds:
                conditions.setdefault(condition.violation, condition)
        for body in instruction.bodies:
            note_conditions(body.program, certain=certain and instruction.op not in OPTIONAL)
    program.conditions = tuple(conditions.values())


def constraint_conditions(
    constraints: Iterable[str], run_sizes: Iterable[RunSize]
) -> tuple[Condition, ...]:
    """Return the conditions that ``constraints`` such as ``S % 4 == 0`` put on the sizes of a run.

    Raises UsageError E633 for a constraint that no size within the bounds keeps.
    """
    sizes = {run_size.name: run_size.size for run_size in run_sizes}
    conditions: list[Condition] = []
    for text in constraints:
        left_text, relation, right_text = sides_of(text)
        left, right = (number_in(symbolic_dim(side), sizes) for side in (left_text, right_text))
        if not (isinstance(left, int | Size) and isinstance(right, int | Size)):
            continue
        if relation == ">=":
            left, right = right, left
        condition = Condition(left, right, or_less=relation != "==")
        if condition.fails:
            bounds = ", ".join(f"{name}={size.low}..{size.high}" for name, size in sizes.items())
            raise UsageError(
                "E633",
                f"no size within {bounds} keeps {text}",
                why=f"the function was traced with {text}",
                fix="give other bounds, or trace without this constraint",
            )
        if not condition.holds:
            conditions.append(condition)
    return tuple(conditions)


def _conditions(program: Program, instruction: Instruction) -> Iterator[Condition]:
    """Yield the conditions of ``instruction``: sizes are at least 0, and operands fit together."""
    equal_sizes = broadcast if instruction.op in ELEMENTWISE else EQUAL.get(instruction.op)
    ordered_sizes = AT_MOST.get(instruction.op)
    operands = [_shape(program, slot) for slot in instruction.inputs]
    results = [_shape(program, slot) for slot in instruction.outputs]
    for size in (size for shape in results for size in shape if isinstance(size, Size)):
        yield Condition(0, size, or_less=True)
    try:
        for one, other in equal_sizes(instruction, operands, results) if equal_sizes else ():
            yield Condition(one, other, or_one=instruction.op == "Expand" and maybe_one(one))
        for lesser, greater in (
            ordered_sizes(instruction, operands, results) if ordered_sizes else ()
        ):
            yield Condition(lesser, greater, or_less=True)
    except Undecided:
        return  # the kernel is refused for the same question


def _shape(program: Program, slot: int) -> Shape:
    """Return the shape of a slot; () for an absent operand."""
    return cast("Shape", program.slots[slot].shape) if slot >= 0 else ()


def _unfit_operands(instruction: Instruction, condition: Condition) -> Unsupported:
    """Return the error E201 for operand sizes that violate ``condition`` in every run."""
    relation = "no more than" if condition.or_less else "equal to"
    return Unsupported(
        "E201",
        f"the operands of {instruction.op} do not fit together",
        at=f"node {instruction.origin!r}",
        why=f"{with_bounds(condition.size)} is never {relation} {with_bounds(condition.other)}",
        fix="give its operands sizes that its operator takes",
    )
