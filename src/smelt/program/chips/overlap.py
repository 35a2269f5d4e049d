"""Orders the copies of a staged Program so that they overlap with computation: double buffering.

A Load moves before the previous computation, so that a copy engine can load while that runs. A
Store moves behind the next computation. The near memory must have room for their slots during the
computations that they pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from smelt.program.chips.memories import Memory
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import aligned

LOAD, STORE = "Load", "Store"

Order: TypeAlias = list[tuple[Instruction, dict[str, int]]]
"""Instructions, each with the live bytes in each near memory."""


def overlapped(
    program: Program, live: Sequence[Mapping[str, int]], memories: Mapping[str, Memory]
) -> Program:
    """Return ``program`` with its copies moved away from the computations that they feed or empty.

    ``live`` are the bytes in use at each instruction, by memory.
    """
    order: Order = [
        (instruction, dict(bytes_))
        for instruction, bytes_ in zip(program.instructions, live, strict=True)
    ]
    for position in range(len(order)):
        if order[position][0].op == LOAD:
            _move_past_computation(
                program, order, position, -1, order[position][0].outputs[0], memories
            )
    for position in range(len(order) - 1, -1, -1):
        if order[position][0].op == STORE:
            _move_past_computation(
                program, order, position, 1, order[position][0].inputs[0], memories
            )
    instructions = [instruction for instruction, _ in order]
    _stores_first(instructions)
    return replace(program, instructions=instructions)


def _stores_first(instructions: list[Instruction]) -> None:
    """Move Stores before Loads among the copies between two computations.

    The data of a Store is ready, while a Load may wait for memory that the previous computation
    still reads. No live range grows.
    """
    for position in range(1, len(instructions)):
        target = position
        while target and instructions[target].op == STORE and instructions[target - 1].op == LOAD:
            store, load = instructions[target], instructions[target - 1]
            if {*store.inputs, *store.outputs} & {*load.inputs, *load.outputs}:
                break
            instructions[target - 1 : target + 1] = store, load
            target -= 1


def _move_past_computation(
    program: Program,
    order: Order,
    position: int,
    step: int,
    slot: int,
    memories: Mapping[str, Memory],
) -> None:
    """Move the copy at ``position`` past one computation that does not depend on it.

    ``step`` is -1 to move backwards, 1 to move forwards. ``slot`` is the copy's slot in near
    memory. It becomes live during each instruction that the copy passes, so the copy stops where
    that memory would be full. After the computation, the copy only passes copies in the other
    direction, so that copies in the same direction keep their order.

    A copy also stays on its side of a computation with the same output slot: both write it. Two
    copies with the same output slot write different parts of it, so they may change places.
    """
    copy, live_at_copy = order[position]
    memory = memories[program.slots[slot].space]
    size = aligned(program.slots[slot].nbytes, memory.align)
    has_passed = False
    while 0 <= position + step < len(order):
        other, live = order[position + step]
        computes = other.op not in (LOAD, STORE)
        depends = set(copy.inputs) & set(other.outputs) or set(copy.outputs) & {
            *other.inputs,
            *(other.outputs if computes else ()),
        }
        is_full = memory.size is not None and live[memory.name] + size > memory.size
        stops = has_passed and (computes or other.op == copy.op)
        if depends or is_full or stops:
            return
        live[memory.name] += size
        live_at_copy = {name: max(bytes_, live[name]) for name, bytes_ in live_at_copy.items()}
        order[position], order[position + step] = (other, live), (copy, live_at_copy)
        has_passed |= computes
        position += step
