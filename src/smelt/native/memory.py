"""What each kernel needs of storage, planned as offsets in one arena."""

from __future__ import annotations

from smelt.native.kernels import kernel_of
from smelt.native.kernels.kernel import Instance
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import ALIGNMENT, MemoryPlan, plan_memory
from smelt.program.storage import Needs


def needs_of(program: Program, instruction: Instruction) -> Needs:
    """What the kernel of ``instruction`` asks of storage."""
    kernel = kernel_of(instruction.op)
    return kernel.needs(Instance(program, instruction)) if kernel is not None else Needs()


def allocate(program: Program, alignment: int = ALIGNMENT) -> MemoryPlan:
    """All buffers of ``program`` in one arena, by the time in which each is needed.

    Each begins at a multiple of ``alignment`` bytes.
    """
    return plan_memory(
        program, lambda instruction: needs_of(program, instruction), alignment=alignment
    )
