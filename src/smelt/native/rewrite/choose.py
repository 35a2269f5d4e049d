"""Replace operators of instructions by those with a better kernel on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from smelt.native.kernels.instance import Instance
from smelt.program.instruction import Program


def choose(program: Program, kernel: Callable[[Instance], str | None]) -> None:
    """Set the operator of each instruction to the result of ``kernel``, in place, bodies included.

    ``kernel`` returns None for an instruction that keeps its operator.
    """
    for body in program.bodies:
        choose(body.program, kernel)
    program.instructions = [
        replace(step, op=kernel(Instance(program, step)) or step.op)
        for step in program.instructions
    ]
