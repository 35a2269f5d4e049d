"""Give instructions other kernels where a machine has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from smelt.native.kernels.instance import Instance
from smelt.program.instruction import Program


def choose(program: Program, kernel: Callable[[Instance], str | None]) -> None:
    """Let ``kernel`` name what computes each instruction, those of bodies, too, in place.

    It says None of what stays as it is.
    """
    for body in program.bodies:
        choose(body.program, kernel)
    program.instructions = [
        replace(step, op=kernel(Instance(program, step)) or step.op)
        for step in program.instructions
    ]
