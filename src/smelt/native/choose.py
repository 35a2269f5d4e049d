"""Replace operators of instructions by those with a better kernel on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from smelt.native.kernels.instance import Instance
from smelt.program.instruction import Program


def choose(program: Program, kernel: Callable[[Instance], str | None]) -> None:
    """Set each instruction's operator to the name that ``kernel`` returns, in place, bodies
    included.

    None keeps the operator.
    """
    for body in program.bodies:
        choose(body.program, kernel)
    program.instructions = [
        replace(step, op=kernel(Instance(program, step)) or step.op)
        for step in program.instructions
    ]
