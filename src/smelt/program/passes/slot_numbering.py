"""Numbers slots in the order of definition, and drops undefined ones.

Passes leave slots behind and append new ones; after this pass equal programs have equal slots.
"""

from __future__ import annotations

from smelt.program.instruction import Program


def run(program: Program) -> bool:
    """Number the inputs first, then constants, then results; True if a number changed."""
    order = dict.fromkeys((*program.inputs, *sorted(program.constants)))
    for instruction in program.instructions:
        order.update(dict.fromkeys(slot for slot in instruction.outputs if slot >= 0))
    number = {slot: new for new, slot in enumerate(order)}
    if len(number) == len(program.slots) and all(slot == new for slot, new in number.items()):
        return False
    number[-1] = -1
    program.slots = [program.slots[slot] for slot in order]
    program.inputs = tuple(number[slot] for slot in program.inputs)
    program.outputs = tuple(number[slot] for slot in program.outputs)
    program.constants = {
        number[slot]: program.constants[slot] for slot in sorted(program.constants)
    }
    for instruction in program.instructions:
        instruction.inputs = tuple(number[slot] for slot in instruction.inputs)
        instruction.outputs = tuple(number[slot] for slot in instruction.outputs)
    return True
