"""Drop instructions whose results nobody reads, and constants along with them."""

from __future__ import annotations

from collections.abc import Collection

from smelt.program.instruction import Instruction, Program


def run(program: Program, *, side_effects: Collection[str] = ()) -> bool:
    """Keep what an output needs, and every instruction whose ``op`` is in ``side_effects``.

    An instruction with several results stays if any of them is read. True if anything went.
    """
    live = set(program.outputs)
    kept: list[Instruction] = []
    for instruction in reversed(program.instructions):
        if instruction.op in side_effects or not live.isdisjoint(instruction.outputs):
            live.update(instruction.inputs)
            kept.append(instruction)
    constants = {slot: array for slot, array in program.constants.items() if slot in live}
    changed = len(kept) < len(program.instructions) or len(constants) < len(program.constants)
    program.instructions = kept[::-1]
    program.constants = constants
    return changed
