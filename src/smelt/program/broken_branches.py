"""Branches that the sizes of a run rule out: what takes one ends the run."""

from __future__ import annotations

from dataclasses import replace

from smelt.program.agreement import note_conditions
from smelt.program.instruction import FAIL, Instruction, Program


def end_broken_branches(program: Program, *, certain: bool = True) -> None:
    """Let bodies of ``program`` whose operands do not fit together do nothing but end the run.

    In place. A branch may be there for other sizes than those at hand, so it is no error that it
    cannot run with these. Raises Unsupported E201 for operands that each run needs, unless it is
    not ``certain`` that there is a run.
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
    """``program`` with nothing but instructions that end a run, one for each of its results."""
    given = {*program.inputs, *program.constants}
    origin = program.instructions[0].origin if program.instructions else ""
    ends = [
        Instruction(FAIL, (), (slot,), {"why": fact}, origin=origin)
        for slot in dict.fromkeys(program.outputs)
        if slot not in given
    ]
    return replace(program, instructions=ends, conditions=()) if ends else program
