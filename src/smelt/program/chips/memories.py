"""Memories of a machine, and the placement of a Program's storages in each.

A slot lives in a memory space, by name; storages of one space share its bytes if their live ranges
do not overlap. One arena without a limit is the special case that ``memory.py`` plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from smelt.errors import Unsupported, UsageError
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import live_from, lower_bound, pack
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
    """A memory of ``size`` bytes, unlimited if None, allocated in units of ``align``.

    ``name`` is the memory space of the slots in it; empty for slots without an assigned space.
    """

    name: str
    size: int | None = None
    align: int = 64

    def __post_init__(self) -> None:
        """Raise UsageError E660 for an invalid size or alignment."""
        are_integers = all(isinstance(n, int) for n in (self.align, self.size) if n is not None)
        if not are_integers or self.align < 1 or (self.size is not None and self.size < 0):
            raise UsageError(
                "E660",
                f"{self} is not a valid memory",
                why="a size is 0 bytes or more, an alignment 1 byte or more",
                fix="pass Memory(name, size=..., align=...) such numbers",
            )


Place: TypeAlias = Callable[[Instruction, int | None], str]
"""Returns the memory name for an operand of an instruction, by position; None means its result."""


def one_place(instruction: Instruction, operand: int | None) -> str:
    """Return the empty name: all operands and results are in the only memory."""
    return ""


def checked(place: Place, names: Collection[str]) -> Place:
    """Return ``place`` with a check that raises UsageError E660 for a memory that is not among
    ``names``."""

    def placed(instruction: Instruction, operand: int | None) -> str:
        """Return the memory of an operand; raises UsageError E660 if ``names`` lacks it."""
        name = place(instruction, operand)
        if name not in names:
            raise UsageError(
                "E660",
                f"`place` puts an operand of {instruction.op} into {name!r}",
                why=f"the memories are {', '.join(map(repr, names))}",
                fix="if there are several memories, pass place=, a function of instruction and "
                "operand",
            )
        return name

    return placed


@dataclass(frozen=True)
class SpacesPlan:
    """The offset of every storage in its memory, except storages that the caller provides.

    ``offsets`` are by id of the storage. By name of a memory, ``used`` are the bytes that the plan
    takes, and ``bounds`` the bytes that any plan for this order of instructions takes at least.
    """

    program: Program
    assignment: Assignment
    offsets: Mapping[int, int]
    used: Mapping[str, int]
    bounds: Mapping[str, int]

    def offset_of(self, slot: int) -> int:
        """Return the offset of ``slot`` in its space; KeyError for storage of the caller."""
        storage = self.assignment.of_slot[slot]
        if storage is None:
            raise KeyError(slot)
        return self.offsets[id(storage)]

    def to_text(self) -> str:
        """Return the plan as text: for each memory its storages by offset, with their live
        ranges."""
        lines = []
        for space, used in self.used.items():
            lines.append(f"{space or 'memory'}: {used} bytes, bound {self.bounds[space]}")
            storages = [each for each in self.assignment.arena if each.space == space]
            for storage in sorted(storages, key=lambda each: (self.offsets[id(each)], each.first)):
                names = ", ".join(self.program.slots[slot].name for slot in storage.slots)
                columns = f"{self.offsets[id(storage)]:>10} {storage.size:>10}"
                lines.append(f"{columns} {storage.first:>6}-{storage.last:<6} {names or 'scratch'}")
        return "\n".join(lines) + "\n"


def plan_spaces(
    program: Program, memories: Sequence[Memory], needs_of: NeedsOf = no_needs
) -> SpacesPlan:
    """Return a plan with the storages of each space of ``program`` in the memory of that name.

    Raises Unsupported E405 for a memory that is too small, with its contents at the peak, and
    UsageError E660 for a space without a memory.
    """
    assignment = assign_storage(program, needs_of)
    by_space: dict[str, list[Storage]] = {memory.name: [] for memory in memories}
    for storage in assignment.arena:
        if storage.space not in by_space:
            raise UsageError(
                "E660",
                f"there is no memory called {storage.space!r}",
                why=f"slots name it as their space; there are {', '.join(map(repr, by_space))}",
                fix="pass a Memory of this name, or set the space of the slots to one of those",
            )
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
    """Return the error for a program that needs more of ``memory``, with the tensors at its
    peak."""
    live = live_from(storages)
    peak = max(live, key=lambda step: live[step], default=0)
    live_storages = [s for s in storages if s.bytes_at(peak)]
    live_storages.sort(key=lambda storage: -storage.bytes_at(peak))
    values = [
        ", ".join(program.slots[slot].name for slot in s.slots) or "scratch" for s in live_storages
    ]
    names = [
        f"{s.bytes_at(peak)} bytes: {value}" for s, value in zip(live_storages, values, strict=True)
    ]
    return Unsupported(
        "E405",
        f"the memory {memory.name!r} of {memory.size} bytes is too small",
        at=[f"step {peak} ({_title(program, peak)})", *names[:8]],
        why=f"{needed} bytes are needed at once",
        fix="split the largest into tiles (smelt.program.chips.tile_search), or let a fallback "
        "run it",
    )


def _title(program: Program, step: int) -> str:
    """Return the origin of the instruction at ``step``, or its operator, for messages."""
    instruction = program.instructions[step]
    return instruction.origin or instruction.op


__all__ = ["Memory", "Owner", "SpacesPlan", "plan_spaces", "too_small"]
