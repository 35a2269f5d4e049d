"""Let LAPACK compute the decompositions of the domain ``smelt``, where this process has it."""

from __future__ import annotations

from dataclasses import replace

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.lapack import DOMAIN, NAMES, takes
from smelt.program.instruction import Instruction, Program


def call_lapack(program: Program) -> None:
    """Turn such instructions into calls, in place, and those of bodies."""
    for body in program.bodies:
        call_lapack(body.program)
    program.instructions = [_called(program, step) for step in program.instructions]


def _called(program: Program, step: Instruction) -> Instruction:
    domain, _, name = step.op.rpartition("::")
    if domain != "smelt" or name not in NAMES or not takes(Instance(program, step), name):
        return step
    return replace(step, op=f"{DOMAIN}::{name}")
