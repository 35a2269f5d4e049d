"""Checks invariants of programs and memory plans: order of writes, disjoint bytes.

A phase that breaks one would compute with overwritten bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from smelt.errors import InternalError
from smelt.program.chips.memories import SpacesPlan
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.program.storage import Storage


def verify_program(program: Program) -> None:
    """Raise InternalError E963 if a slot is read before it is written, or does not exist."""
    known = {*program.inputs, *program.constants}
    for step, instruction in enumerate(program.instructions):
        for slot in (*instruction.inputs, *instruction.outputs):
            if slot >= len(program.slots):
                raise broken(
                    f"step {step} ({instruction.op}) names slot {slot}, which does not exist"
                )
        early = [slot for slot in instruction.inputs if slot >= 0 and slot not in known]
        if early:
            name = program.slots[early[0]].name
            raise broken(f"step {step} ({instruction.op}) reads {name!r} before it is written")
        known.update(instruction.outputs)
    missing = [program.slots[slot].name for slot in program.outputs if slot not in known]
    if missing:
        raise broken(f"the output {missing[0]!r} is never written")
    for body in program.bodies:
        verify_program(body.program)


def verify_memory(plan: MemoryPlan | SpacesPlan) -> None:
    """Raise InternalError E963 if storages that are live at one step share bytes, or exceed their
    memory."""
    for space, limit, placed in _spaces(plan):
        for storage, offset in placed:
            if offset < 0 or offset + storage.size > limit:
                raise broken(f"{_name(plan, storage)} leaves the {limit} bytes of {space}")
        live: dict[int, list[tuple[int, int, Storage]]] = defaultdict(list)
        for storage, offset in placed:
            for first, last, size in storage.spans():
                for step in range(first, last + 1) if size else ():
                    live[step].append((offset, offset + size, storage))
        for step, ranges in live.items():
            _verify_step(plan, step, ranges)
    for body in plan.program.bodies:
        if isinstance(body.plan, MemoryPlan):
            verify_memory(body.plan)


def _verify_step(
    plan: MemoryPlan | SpacesPlan, step: int, ranges: list[tuple[int, int, Storage]]
) -> None:
    """Raise InternalError E963 if two byte ranges that are live at ``step`` overlap."""
    ranges.sort(key=lambda range_: range_[:2])
    for (_, lower_stop, lower), (upper_start, _, upper) in pairwise(ranges):
        if upper_start < lower_stop:
            names = f"{_name(plan, lower)} and {_name(plan, upper)}"
            raise broken(f"{names} share bytes at step {step}")


def _spaces(
    plan: MemoryPlan | SpacesPlan,
) -> Iterator[tuple[str, int, list[tuple[Storage, int]]]]:
    """Yield each memory: its name, its bytes, and the storages in it with their offsets."""
    arena = plan.assignment.arena
    if isinstance(plan, MemoryPlan):
        yield "the arena", plan.arena_bytes, list(zip(arena, plan.offsets, strict=True))
        return
    for space, used in plan.used.items():
        yield space, used, [(s, plan.offsets[id(s)]) for s in arena if s.space == space]


def _name(plan: MemoryPlan | SpacesPlan, storage: Storage) -> str:
    """Return the names of the slots of ``storage``, or of its scratch space, for messages."""
    names = ", ".join(plan.program.slots[slot].name for slot in storage.slots)
    return repr(names or f"scratch of step {storage.first}")


def broken(problem: str) -> InternalError:
    """Return the error E963 for a program or plan that violates an invariant."""
    return InternalError(
        "E963",
        problem,
        why="a phase of the target broke an invariant",
        fix="report this with the model",
    )
