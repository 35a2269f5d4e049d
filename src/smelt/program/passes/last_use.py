"""Flags each input that no later instruction reads and that is no output of the program.

A slot that one instruction reads twice is flagged in both positions. Inputs and constants of the
program are flagged like other slots: the flag means "not read later", not "may be overwritten".
"""

from __future__ import annotations

from smelt.program.instruction import Program


def run(program: Program) -> bool:
    """Set ``last_use`` of every instruction; True if a flag changed."""
    needed = set(program.outputs)
    changed = False
    for instruction in reversed(program.instructions):
        flags = tuple(slot >= 0 and slot not in needed for slot in instruction.inputs)
        needed.update(instruction.inputs)
        changed = changed or flags != instruction.last_use
        instruction.last_use = flags
    return changed
