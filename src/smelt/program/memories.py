"""The memories of a machine, and where in each the storages of a Program lie.

A slot lives in a space, by name; the storages of one space share its bytes by the time in which
each is live. One arena without a limit is the special case that ``memory.py`` plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from smelt.errors import Unsupported, UsageError
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import lower_bound, pack
from smelt.program.storage import (
    Assignment,
    NeedsOf,
    Owner,
    Storage,
    assign_storage,
    no_needs,
)


@dataclass(frozen=True)
class Memory:
    """A memory of ``size`` bytes, any number if None, used in units of ``align``.

    ``name`` is the space of slots that lie in it; empty for those that nobody has assigned.
    """

    name: str
    size: int | None = None
    align: int = 64

    def __post_init__(self) -> None:
        whole = all(isinstance(n, int) for n in (self.align, self.size) if n is not None)
        if not whole or self.align < 1 or (self.size is not None and self.size < 0):
            raise UsageError(
                "E660",
                f"{self} is no memory",
                why="a size is a number of bytes from 0 on, an alignment one from 1 on",
            )


Place: TypeAlias = Callable[[Instruction, int | None], str]
"""The memory, by name, in which an instruction wants an operand, by position; None: its result."""


def one_place(instruction: Instruction, operand: int | None) -> str:
    """All in the one memory."""
    return ""


def checked(place: Place, names: Collection[str]) -> Place:
    """``place``, which raises UsageError E660 for a memory that is not among ``names``."""

    def placed(instruction: Instruction, operand: int | None) -> str:
        name = place(instruction, operand)
        if name not in names:
            raise UsageError(
                "E660",
                f"`place` puts an operand of {instruction.op} into {name!r}",
                why=f"the memories are {', '.join(map(repr, names))}",
                fix="where there are several, give place=, a function of instruction and operand",
            )
        return name

    return placed


@dataclass(frozen=True)
class SpacesPlan:
    """An offset in its memory for every storage that the caller doesn't provide.

    ``used`` are the bytes taken of each memory, ``bounds`` what no plan for this order beats.
    """

    program: Program
    assignment: Assignment
    offsets: Mapping[int, int]
    used: Mapping[str, int]
    bounds: Mapping[str, int]

    def offset_of(self, slot: int) -> int:
        """The offset of ``slot`` in its space; KeyError for storage of the caller."""
        storage = self.assignment.of_slot[slot]
        if storage is None:
            raise KeyError(slot)
        return self.offsets[id(storage)]

    def to_text(self) -> str:
        """Each memory, and by offset what lies in it from which step to which."""
        lines = []
        for space, used in self.used.items():
            lines.append(f"{space or 'memory'}: {used} bytes, bound {self.bounds[space]}")
            held = [s for s in self.assignment.arena if s.space == space]
            for storage in sorted(held, key=lambda s: (self.offsets[id(s)], s.first)):
                names = ", ".join(self.program.slots[slot].name for slot in storage.slots)
                at = f"{self.offsets[id(storage)]:>10} {storage.size:>10}"
                lines.append(f"{at} {storage.first:>6}-{storage.last:<6} {names or 'scratch'}")
        return "\n".join(lines) + "\n"


def plan_spaces(
    program: Program, memories: Sequence[Memory], needs_of: NeedsOf = no_needs
) -> SpacesPlan:
    """Place the storages of each space of ``program`` in the memory of that name.

    Raises Unsupported E405 for a memory that is too small, with what lies in it at the peak, and
    UsageError E660 for a space that is no memory.
    """
    assignment = assign_storage(program, needs_of)
    by_space: dict[str, list[Storage]] = {memory.name: [] for memory in memories}
    for storage in assignment.arena:
        if storage.space not in by_space:
            raise UsageError("E660", f"there is no memory called {storage.space!r}")
        by_space[storage.space].append(storage)
    offsets: dict[int, int] = {}
    used, bounds = {}, {}
    for memory in memories:
        storages = by_space[memory.name]
        bounds[memory.name] = lower_bound(storages, memory.align)
        if memory.size is not None and bounds[memory.name] > memory.size:
            raise too_small(memory, program, storages, bounds[memory.name])
        placed, used[memory.name] = pack(storages, memory.align, bounds[memory.name])
        if memory.size is not None and used[memory.name] > memory.size:
            raise too_small(memory, program, storages, used[memory.name])
        offsets.update((id(s), offset) for s, offset in zip(storages, placed, strict=True))
    return SpacesPlan(program, assignment, offsets, used, bounds)


def too_small(
    memory: Memory, program: Program, storages: Sequence[Storage], needed: int
) -> Unsupported:
    """The refusal of a program that needs more of ``memory``, with the tensors at its peak."""
    steps = range(len(program.instructions))
    live = {step: sum(s.bytes_at(step) for s in storages) for step in steps}
    peak = max(steps, key=lambda step: live[step], default=0)
    held = [s for s in storages if s.bytes_at(peak)]
    held.sort(key=lambda storage: -storage.bytes_at(peak))
    values = [", ".join(program.slots[i].name for i in s.slots) or "scratch" for s in held]
    names = [f"{s.bytes_at(peak)} bytes: {value}" for s, value in zip(held, values, strict=True)]
    return Unsupported(
        "E405",
        f"the memory {memory.name!r} of {memory.size} bytes is too small",
        at=[f"step {peak} ({_title(program, peak)})", *names[:8]],
        why=f"{needed} bytes are needed at once",
        fix="split the largest into tiles (smelt.program.tile_search), or let a fallback run it",
    )


def _title(program: Program, step: int) -> str:
    instruction = program.instructions[step]
    return instruction.origin or instruction.op


__all__ = ["Memory", "Owner", "SpacesPlan", "plan_spaces", "too_small"]
