"""Branches that cannot run for the given sizes: taking one aborts the run."""

from __future__ import annotations

from dataclasses import replace

from smelt.program.agreement import note_conditions
from smelt.program.instruction import FAIL, Instruction, Program


def end_broken_branches(program: Program, *, certain: bool = True) -> None:
    """Replace bodies of ``program`` whose operands do not fit together by an abort, in place.

    A branch may serve other sizes than the given ones, so it is no error that it cannot run with
    these. Raises Unsupported E201 for operands that every run needs, unless it is not ``certain``
    that the program runs.
    """
    note_conditions(program, certain=certain)
    _abort_bodies(program)


def _abort_bodies(program: Program) -> None:
    """Replace each body of ``program`` in which a condition fails by an abort, in place.

    The abort has the requirement that fails as its text; runtimes put words before it, such as
    "this requirement does not hold: the sizes 4 and 5 fit".
    """
    for body in program.bodies:
        failing = next(
            (condition for condition in body.program.conditions if condition.fails), None
        )
        if failing is None:
            _abort_bodies(body.program)
        else:
            body.program = _aborting(
                body.program, f"the sizes {failing.size} and {failing.other} fit"
            )


def _aborting(program: Program, requirement: str) -> Program:
    """Return ``program`` with one instruction per result, which aborts the run because
    ``requirement`` does not hold. Results that are inputs or constants need none."""
    not_computed = {*program.inputs, *program.constants}
    origin = program.instructions[0].origin if program.instructions else ""
    aborts = [
        Instruction(FAIL, (), (slot,), {"why": requirement}, origin=origin)
        for slot in dict.fromkeys(program.outputs)
        if slot not in not_computed
    ]
    return replace(program, instructions=aborts, conditions=()) if aborts else program
