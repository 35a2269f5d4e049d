"""Removes instructions whose results nobody reads, and unread constants."""

from __future__ import annotations

from collections.abc import Collection, Set

from smelt.ir.scope import CHECKS
from smelt.program.instruction import Instruction, Program

SIDE_EFFECTS = frozenset(f"{domain}::{name}" for domain, name in CHECKS)
"""Instructions that abort a run for some operands."""


def run(program: Program, *, side_effects: Collection[str] = SIDE_EFFECTS) -> bool:
    """Remove unread instructions and constants; True if there were any.

    An instruction with several results stays if any of them is read, and one whose ``op`` is in
    ``side_effects`` stays always. An instruction that computes a data-dependent size stays, because
    shapes may use the size without reading the result.
    """
    live = set(program.outputs)
    computed = {str(size.size) for size in program.data_dependent_sizes}
    needed: list[Instruction] = []
    for instruction in reversed(program.instructions):
        is_needed = instruction.op in side_effects or _computes_size(program, instruction, computed)
        if is_needed or not live.isdisjoint(instruction.outputs):
            live.update(instruction.inputs)
            needed.append(instruction)
    constants = {slot: array for slot, array in program.constants.items() if slot in live}
    changed = len(needed) < len(program.instructions) or len(constants) < len(program.constants)
    program.instructions = needed[::-1]
    program.constants = constants
    return changed


def _computes_size(program: Program, instruction: Instruction, computed: Set[str]) -> bool:
    """True if a result has a size among ``computed`` that no operand has."""
    if not computed:
        return False
    before, after = (
        {str(dim) for slot in slots if slot >= 0 for dim in program.slots[slot].shape}
        for slots in (instruction.inputs, instruction.outputs)
    )
    return not computed.isdisjoint(after - before)
