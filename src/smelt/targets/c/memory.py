"""The memory phase: what each kernel needs, planned as offsets in one arena."""

from __future__ import annotations

from smelt.program.instruction import Instruction, Program
from smelt.program.memory import plan_memory
from smelt.program.storage import Needs
from smelt.targets.base import Plan
from smelt.targets.c.kernels import kernel_of
from smelt.targets.c.kernels.kernel import Instance


def needs_of(program: Program, instruction: Instruction) -> Needs:
    """What the kernel of ``instruction`` asks of storage."""
    kernel = kernel_of(instruction.op)
    return kernel.needs(Instance(program, instruction)) if kernel is not None else Needs()


def allocate(plan: Plan) -> None:
    """Lay all buffers out in one arena, by the time in which each is needed.

    Sets ``plan.memory``; ``bound_bytes`` is what no plan can beat.
    """
    program: Program = plan.steps
    memory = plan_memory(program, lambda instruction: needs_of(program, instruction))
    plan.memory = memory
    plan.facts["arena_bytes"] = memory.arena_bytes
    plan.facts["bound_bytes"] = memory.bound_bytes
    plan.facts["scratch_bytes"] = memory.scratch_bytes
