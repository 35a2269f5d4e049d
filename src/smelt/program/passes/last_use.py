"""Flag each input that no later instruction reads and that is no output of the program.

A slot that one instruction reads twice is flagged in both places. Inputs and constants of the
program are flagged like any slot: a flag says that nobody reads, not that one may write.
"""

from __future__ import annotations

from smelt.program.instruction import Program


def run(program: Program) -> bool:
    """Fill ``last_use`` of every instruction; true if a flag changed."""
    needed = set(program.outputs)
    changed = False
    for instruction in reversed(program.instructions):
        flags = tuple(slot >= 0 and slot not in needed for slot in instruction.inputs)
        needed.update(instruction.inputs)
        changed = changed or flags != instruction.last_use
        instruction.last_use = flags
    return changed
