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
    _end(program)


def _end(program: Program) -> None:
    for body in program.bodies:
        broken = next((each for each in body.program.conditions if each.fails), None)
        if broken is None:
            _end(body.program)
        else:
            body.program = _ending(body.program, f"the sizes {broken.size} and {broken.other} fit")


def _ending(program: Program, fact: str) -> Program:
    """Return ``program`` with only instructions that abort the run, one per result."""
    given = {*program.inputs, *program.constants}
    origin = program.instructions[0].origin if program.instructions else ""
    ends = [
        Instruction(FAIL, (), (slot,), {"why": fact}, origin=origin)
        for slot in dict.fromkeys(program.outputs)
        if slot not in given
    ]
    return replace(program, instructions=ends, conditions=()) if ends else program
