"""Plan the storage of all kernels as offsets in one arena."""

from __future__ import annotations

from dataclasses import replace

from smelt.native.kernels import kernel_of
from smelt.native.kernels.instance import Instance
from smelt.native.sharing import SINGLE_THREADED, parts_of, shared_needs
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import ALIGNMENT, MemoryPlan, live_from, plan_memory
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs


def needs_of(program: Program, instruction: Instruction) -> Needs:
    """Return the storage needs of an instruction's kernel, for the largest sizes."""
    kernel = kernel_of(instruction.op)
    if kernel is None:
        return Needs()
    needs = kernel.needs(Instance(program, instruction))
    return replace(needs, workspace=highest(needs.workspace))


def allocate(
    program: Program, alignment: int = ALIGNMENT, parts: int = 1, limit: int | None = None
) -> MemoryPlan:
    """Return a plan of all buffers of ``program`` in one arena, reused by live range.

    Each buffer begins at a multiple of ``alignment`` bytes. A split kernel has scratch space for
    each of up to ``parts`` shards. If the arena then exceeds ``limit`` bytes, instructions at the
    memory peak stay single-threaded; ``plan.program`` marks them.
    """
    plan = _planned_memory(program, alignment, parts)
    best = plan
    while limit is not None and best.arena_bytes > limit:
        marked = _unsplit_at_peak(plan, parts, limit)
        if marked is None:
            break
        plan = _planned_memory(marked, alignment, parts)
        best = min(best, plan, key=lambda each: each.arena_bytes)
    return best


def _unsplit_at_peak(plan: MemoryPlan, parts: int, limit: int) -> Program | None:
    """Return the program with the split instructions at the memory peak marked as single-threaded.

    If no split instruction is at the peak, all of them are marked. None if no instruction is split.
    """
    program = plan.program
    split = [parts_of(program, each, parts) > 1 for each in program.instructions]
    if not any(split):
        return None
    live, changes = 0, live_from(plan.assignment.arena, plan.alignment)
    exceeding = []
    for step, is_split in enumerate(split):
        live = changes.get(step, live)
        exceeding.append(is_split and live > limit)
    chosen = exceeding if any(exceeding) else split
    instructions = [
        replace(each, attributes={**each.attributes, SINGLE_THREADED: 1}) if is_chosen else each
        for each, is_chosen in zip(program.instructions, chosen, strict=True)
    ]
    return replace(program, instructions=instructions)


def _planned_memory(program: Program, alignment: int, parts: int) -> MemoryPlan:
    """Return the memory plan with scratch space for up to ``parts`` shards of each split
    instruction.
    """

    def needs(instruction: Instruction) -> Needs:
        """Return the storage needs of an instruction, with scratch space for each shard."""
        whole = needs_of(program, instruction)
        return shared_needs(whole, parts_of(program, instruction, parts), alignment)

    return plan_memory(program, needs, alignment=alignment)
