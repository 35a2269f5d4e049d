"""What each kernel needs of storage, planned as offsets in one arena."""

from __future__ import annotations

from dataclasses import replace

from smelt.native.kernels import kernel_of
from smelt.native.kernels.instance import Instance
from smelt.native.sharing import parts_of, shared_needs
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import ALIGNMENT, MemoryPlan, plan_memory
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs


def needs_of(program: Program, instruction: Instruction) -> Needs:
    """What the kernel of ``instruction`` asks of storage, in the largest run."""
    kernel = kernel_of(instruction.op)
    if kernel is None:
        return Needs()
    needs = kernel.needs(Instance(program, instruction))
    return replace(needs, workspace=highest(needs.workspace))


def allocate(program: Program, alignment: int = ALIGNMENT, parts: int = 1) -> MemoryPlan:
    """All buffers of ``program`` in one arena, by the time in which each is needed.

    Each begins at a multiple of ``alignment`` bytes. What a kernel is cut into has scratch space
    of its own, up to so many ``parts``.
    """

    def needs(instruction: Instruction) -> Needs:
        whole = needs_of(program, instruction)
        return shared_needs(whole, parts_of(program, instruction, parts), alignment)

    return plan_memory(program, needs, alignment=alignment)
