"""Assigns slots of a Program to storages: which slots share bytes, and each storage's live range.

A *storage* is one range of bytes. It holds a slot, its views (a Reshape copies nothing), and
results computed in place. A storage belongs to the caller (inputs and outputs), to the constants,
or to the arena, which exists only during a run and is planned in ``memory.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from smelt.errors import Unsupported
from smelt.ir.symbolic_dims.dims import is_symbolic
from smelt.program.instruction import Instruction, Program
from smelt.program.passes import last_use


@dataclass(frozen=True, slots=True)
class Needs:
    """The storage needs of one instruction beyond its operands.

    ``view_of``: input whose bytes are the first output, unchanged. ``in_place``: inputs of the size
    of the first output that it may overwrite element for element, in order of preference. ``over``:
    inputs that are no smaller, whose beginning the output may overwrite. ``workspace``: scratch
    bytes during the instruction.
    """

    view_of: int | None = None
    in_place: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    workspace: int = 0


NeedsOf: TypeAlias = Callable[[Instruction], Needs]


class Owner(Enum):
    """The provider of a storage's bytes."""

    ARENA = "arena"
    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"


@dataclass(slots=True)
class Storage:
    """One range of bytes, live from step ``first`` to step ``last``, both included.

    ``index`` is the position among the program's inputs or outputs, or the constant's slot,
    depending on ``owner``. ``scratch``: it is the workspace of the instruction at ``first``.
    ``space`` names its memory. ``shrunk`` lists steps after which only so many bytes at its
    beginning stay live.
    """

    size: int
    first: int
    last: int
    owner: Owner = Owner.ARENA
    index: int = -1
    slots: list[int] = field(default_factory=list)
    scratch: bool = False
    space: str = ""
    shrunk: list[tuple[int, int]] = field(default_factory=list)

    @property
    def final_size(self) -> int:
        """Return the bytes live at step ``last``."""
        return self.shrunk[-1][1] if self.shrunk else self.size

    def bytes_at(self, step: int) -> int:
        """Return the number of bytes live at ``step``."""
        return next((size for first, last, size in self.spans() if first <= step <= last), 0)

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yield ``(first, last, bytes)``: the bytes live between two steps."""
        first, size = self.first, self.size
        for step, size_left in self.shrunk:
            yield first, step, size
            first, size = step + 1, size_left
        yield first, self.last, size


@dataclass(frozen=True)
class Assignment:
    """The storage of every slot and scratch space.

    ``of_slot[slot]`` is None for a slot that nothing writes. ``scratch[step]`` is None for an
    instruction without workspace. ``copies`` lists ``(output, slot)``: outputs of the program that
    must be copied at the end, because they are an input, a constant, or returned twice.
    """

    storages: tuple[Storage, ...]
    of_slot: tuple[Storage | None, ...]
    scratch: tuple[Storage | None, ...]
    copies: tuple[tuple[int, int], ...]

    @property
    def arena(self) -> tuple[Storage, ...]:
        """Return the storages that lie in the arena, in order of creation."""
        return tuple(storage for storage in self.storages if storage.owner is Owner.ARENA)


def no_needs(instruction: Instruction) -> Needs:
    """Return no needs: every result gets its own storage."""
    return Needs()


def assign_storage(
    program: Program, needs_of: NeedsOf = no_needs, *, outputs_in_arena: bool = False
) -> Assignment:
    """Return a storage for every slot of ``program``, found in one pass over its instructions.

    A storage ends at the last use of its slots in the present order; ``last_use`` is computed here
    if it never was. With ``outputs_in_arena``, results stay in the arena until the end instead of
    being written to buffers of the caller. Raises Unsupported E411 for slots with symbolic dims.
    """
    _check_sizes(program)
    if any(
        len(instruction.last_use) != len(instruction.inputs) for instruction in program.instructions
    ):
        last_use.run(program)
    return _Assigner(program, outputs_in_arena).run(needs_of)


def _check_sizes(program: Program) -> None:
    """Raise Unsupported E411 if a slot has a symbolic dim."""
    for slot in program.slots:
        unknown = [dim for dim in slot.shape if is_symbolic(dim)]
        if unknown:
            raise Unsupported(
                "E411",
                f"the size {unknown[0]} of {slot.name!r} is not known, so nothing can be planned",
                why="a plan gives each slot a number of bytes",
                fix="first call specialize(program, shapes), or resolve_sizes() if the dims have "
                "bounds; then plan",
            )


class _Assigner:
    """One pass of storage assignment over a program."""

    def __init__(self, program: Program, outputs_in_arena: bool) -> None:
        """Begin without storages; ``of_slot`` will have the storage of each slot."""
        self.program = program
        self.outputs_in_arena = outputs_in_arena
        self.of_slot: list[Storage | None] = [None] * len(program.slots)
        self.storages: list[Storage] = []
        self.returned = set(program.outputs)
        self.last_read = _last_reads(program)
        self.end = len(program.instructions)

    def run(self, needs_of: NeedsOf) -> Assignment:
        """Return the assignment of all slots."""
        self._add_caller_storage()
        scratch: list[Storage | None] = []
        for step, instruction in enumerate(self.program.instructions):
            needs = needs_of(instruction)
            scratch.append(self._scratch(step, instruction, needs.workspace))
            shared = self._shared(step, instruction, needs)
            for position, slot in enumerate(instruction.outputs):
                if slot >= 0:
                    self._write(step, slot, shared if position == 0 else None)
        copies = self._place_outputs()
        return Assignment(tuple(self.storages), tuple(self.of_slot), tuple(scratch), copies)

    def _add_caller_storage(self) -> None:
        """Add a storage for each input and constant, whose memory the caller provides."""
        owners = [(slot, Owner.INPUT, i) for i, slot in enumerate(self.program.inputs)]
        owners += [(slot, Owner.CONSTANT, slot) for slot in self.program.constants]
        for slot, owner, index in owners:
            size = self.program.slots[slot].most_bytes
            space = self.program.slots[slot].space
            storage = Storage(size, -1, self.end, owner, index, [slot], space=space)
            self.storages.append(storage)
            self.of_slot[slot] = storage

    def _scratch(self, step: int, instruction: Instruction, size: int) -> Storage | None:
        """Return a new storage for the workspace of an instruction; None if it needs none."""
        if size == 0:
            return None
        spaces = [self.program.slots[slot].space for slot in instruction.outputs if slot >= 0]
        storage = Storage(size, step, step, scratch=True, space=spaces[0] if spaces else "")
        self.storages.append(storage)
        return storage

    def _shared(self, step: int, instruction: Instruction, needs: Needs) -> Storage | None:
        """Return the storage of an input that the first output reuses; None if the output needs a
        new one.
        """
        if needs.view_of is not None:
            return self.of_slot[instruction.inputs[needs.view_of]]
        size = self.program.slots[instruction.outputs[0]].most_bytes if instruction.outputs else 0
        for position in (*needs.in_place, *needs.over):
            slot = instruction.inputs[position]
            storage = self.of_slot[slot] if slot >= 0 else None
            if storage is None or storage.space != self.program.slots[instruction.outputs[0]].space:
                continue
            may_be_smaller = position in needs.over and instruction.outputs[0] not in self.returned
            if storage.final_size != size and not (may_be_smaller and size < storage.final_size):
                continue
            if self._may_overwrite(storage, slot, step, instruction):
                if size < storage.final_size:
                    storage.shrunk.append((step, size))
                return storage
        return None

    def _may_overwrite(
        self, storage: Storage, slot: int, step: int, instruction: Instruction
    ) -> bool:
        """True if nothing else reads ``storage`` later, and this instruction only as ``slot``."""
        if storage.owner is not Owner.ARENA:
            return False
        if any(
            self.last_read[held_slot] > step or held_slot in self.returned
            for held_slot in storage.slots
        ):
            return False
        return all(
            other in (slot, -1) or self.of_slot[other] is not storage
            for other in instruction.inputs
        )

    def _write(self, step: int, slot: int, storage: Storage | None) -> None:
        """Assign ``slot`` to ``storage``, or to a new one, and extend its live range."""
        earlier = self.of_slot[slot]
        if earlier is not None:  # a further box of a slot that Stores fill
            earlier.last = max(earlier.last, step)
            return
        if storage is None:
            described = self.program.slots[slot]
            storage = Storage(described.most_bytes, step, step, space=described.space)
            self.storages.append(storage)
        storage.slots.append(slot)
        storage.last = max(storage.last, step, self.last_read[slot])
        self.of_slot[slot] = storage

    def _place_outputs(self) -> tuple[tuple[int, int], ...]:
        """Write results directly to the caller's outputs where possible; return the other outputs
        as copies."""
        copies: list[tuple[int, int]] = []
        for index, slot in enumerate(self.program.outputs):
            storage = self.of_slot[slot]
            if storage is None:
                raise ValueError(f"output slot {slot} is never written")
            storage.last = max(storage.last, self.end)
            if storage.owner is Owner.ARENA and not storage.shrunk and not self.outputs_in_arena:
                storage.owner, storage.index = Owner.OUTPUT, index
            else:
                copies.append((index, slot))
        return tuple(copies)


def _last_reads(program: Program) -> Sequence[int]:
    """Return for each slot the step whose read is flagged as its last; -1 if there is none."""
    last = [-1] * len(program.slots)
    for step, instruction in enumerate(program.instructions):
        for slot, is_last in zip(instruction.inputs, instruction.last_use, strict=True):
            if is_last:
                last[slot] = step
    return last
