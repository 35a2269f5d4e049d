"""Stages a Program through a near memory: loads and stores become instructions.

Inputs, constants and outputs live in the home memory; instructions read and write a near memory
(the scratchpad of an accelerator). ``Load`` copies a slot, or a box of one, into a near memory;
``Store`` copies back. What does not fit is spilled: the value with the farthest next use goes first
(Belady, 1966), and is loaded again before that use. ``overlap`` then lets copies and computations
run concurrently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from smelt.errors import Unsupported
from smelt.program.chips.memories import Memory, Place, SpacesPlan, checked, one_place, plan_spaces
from smelt.program.chips.overlap import LOAD, STORE, overlapped
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program
from smelt.program.memory import aligned
from smelt.program.passes import last_use
from smelt.program.storage import NeedsOf, no_needs

BAND, JOIN = "Band", "Join"

ATTEMPTS = 8
"""Maximum number of restagings with less memory if a plan leaves gaps."""


def plan_staged(
    program: Program,
    home: Memory,
    near: Memory | Sequence[Memory],
    needs_of: NeedsOf = no_needs,
    *,
    place: Place = one_place,
    double_buffer: bool = True,
) -> SpacesPlan:
    """Return ``program`` staged through ``near``, with an offset for each slot in every memory.

    ``near`` may be several memories; ``place`` then says which one an instruction uses for what. A
    value that is needed in another near memory goes there through ``home``. Staging counts bytes
    only, so a plan with gaps may not fit: then it is staged again for a little less memory, and at
    last without double buffering. Raises Unsupported E405 if one instruction needs more than a near
    memory holds, or all together more than ``home``.
    """
    memories = (near,) if isinstance(near, Memory) else tuple(near)
    refusal: Unsupported | None = None
    for buffers_twice in (True, False) if double_buffer else (False,):
        limits = memories
        for _ in range(ATTEMPTS):
            try:
                staged = stage(
                    program, home, limits, needs_of, place=place, double_buffer=buffers_twice
                )
                return plan_spaces(staged, (home, *memories), needs_of)
            except Unsupported as error:
                refusal = refusal or error
                if all(memory.size is None or memory.size <= memory.align for memory in limits):
                    break
                limits = tuple(map(_reduced, limits))
    assert refusal is not None
    raise refusal


def _reduced(memory: Memory) -> Memory:
    """Return ``memory`` with its size reduced by a sixteenth; an unlimited one unchanged."""
    if memory.size is None:
        return memory
    return replace(memory, size=max(memory.size - max(memory.size // 16, memory.align), 0))


def stage(
    program: Program,
    home: Memory,
    near: Memory | Sequence[Memory],
    needs_of: NeedsOf = no_needs,
    *,
    place: Place = one_place,
    double_buffer: bool = True,
) -> Program:
    """Return ``program`` with Loads and Stores, so that the live slots of each near memory fit.

    A ``Band`` of a slot becomes a Load of that box, a ``Join`` one Store for each of its parts.
    """
    near_memories = (near,) if isinstance(near, Memory) else tuple(near)
    memories = {memory.name: memory for memory in near_memories}
    if len(near_memories) == 1:
        place = lambda instruction, operand: near_memories[0].name  # noqa: E731
    stager = _Stager(program, home, memories, checked(place, memories))
    for step, instruction in enumerate(program.instructions):
        stager.step(step, instruction, needs_of(instruction).workspace)
    staged = overlapped(stager.staged, stager.live, memories) if double_buffer else stager.staged
    last_use.run(staged)
    return staged


@dataclass
class _Stager:
    """Rewrites one program instruction by instruction; ``staged`` is the new program.

    State after each instruction: ``held`` maps slots of ``program`` to their copies in each near
    memory, ``stored`` are the slots whose value is in the home memory. ``bands`` has the Band that
    makes a slot, ``joined`` the slot and box into which a part of a Join is stored. ``live[i]`` are
    the bytes in use at instruction ``i`` of ``staged``, by memory.
    """

    program: Program
    home: Memory
    near: Mapping[str, Memory]
    place: Place
    staged: Program = field(init=False)
    held: dict[str, dict[int, int]] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    live: list[dict[str, int]] = field(default_factory=list)
    bands: dict[int, Instruction] = field(default_factory=dict)
    joined: dict[int, tuple[int, Mapping[str, AttributeValue | DotDims]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        """Begin a program with all slots in the home memory; note the steps that read each slot."""
        program = self.program
        slots = [replace(slot, space=self.home.name) for slot in program.slots]
        self.staged = replace(program, slots=slots, instructions=[])
        self.held.update({name: {} for name in self.near})
        self.stored.update(program.inputs, program.constants)
        self.readers: dict[int, list[int]] = {}
        for step, instruction in enumerate(program.instructions):
            if instruction.op == JOIN:
                self._plan_join(instruction)
                continue  # its parts are stored as they are written
            for slot in instruction.inputs:
                self.readers.setdefault(slot, []).append(step)

    def _plan_join(self, join: Instruction) -> None:
        """Note where in the joined slot each part of ``join`` is stored."""
        axes, starts = join.ints("axes"), join.ints("starts")
        for number, slot in enumerate(join.inputs):
            first = starts[number * len(axes) : (number + 1) * len(axes)]
            sizes = [self.program.slots[slot].sizes[axis] for axis in axes]
            stops = tuple(a + b for a, b in zip(first, sizes, strict=True))
            box: dict[str, AttributeValue | DotDims] = {"axes": axes, "starts": first}
            self.joined[slot] = join.outputs[0], {**box, "stops": stops}

    def step(self, step: int, instruction: Instruction, workspace: int) -> None:
        """Stage instruction number ``step``, then drop near copies that no later one reads."""
        if instruction.op == JOIN:
            self.stored.add(instruction.outputs[0])
            return
        if instruction.op == BAND:
            self._store(instruction.inputs[0], step)
            self.bands[instruction.outputs[0]] = instruction
        else:
            self._compute(step, instruction, workspace)
        for copies in self.held.values():
            for slot in [s for s in copies if self._next_read(s, step + 1) < 0]:
                del copies[slot]

    def _compute(self, step: int, instruction: Instruction, workspace: int) -> None:
        """Load missing operands after making room, then emit the instruction on near slots.

        Operands and results are (slot, memory); ``held`` maps a slot to its copy in a memory.
        """
        operands = {
            (slot, self.place(instruction, i)): None
            for i, slot in enumerate(instruction.inputs)
            if slot >= 0
        }
        to_load = [(slot, space) for slot, space in operands if slot not in self.held[space]]
        for slot, _ in to_load:
            self._store(slot, step)
        result_memory = self.place(instruction, None)
        results = [(slot, result_memory) for slot in instruction.outputs if slot >= 0]
        for space, memory in self.near.items():
            new_slots = [slot for slot, slot_space in (*to_load, *results) if slot_space == space]
            needed = sum(self._bytes(slot, space) for slot in new_slots)
            needed += aligned(workspace, memory.align) if space == result_memory else 0
            keep = {slot for slot, slot_space in operands if slot_space == space}
            self._make_room(step, memory, needed, keep, instruction)
        for slot, space in to_load:
            self._load(slot, space, step)
        inputs = tuple(
            self.held[self.place(instruction, i)][slot] if slot >= 0 else slot
            for i, slot in enumerate(instruction.inputs)
        )
        outputs = tuple(self._new(s, result_memory) if s >= 0 else s for s in instruction.outputs)
        workspace_bytes = {result_memory: aligned(workspace, self.near[result_memory].align)}
        self._emit(replace(instruction, inputs=inputs, outputs=outputs), step, workspace_bytes)
        self._store_results([slot for slot, _ in results], result_memory, step)

    def _store_results(self, slots: Sequence[int], result: str, step: int) -> None:
        """Store the results in ``slots`` that the program returns, or that a Join takes."""
        for slot in slots:
            if slot in self.joined:
                joined_slot, box = self.joined[slot]
                store = Instruction(STORE, (self.held[result][slot],), (joined_slot,), box)
                self._emit(store, step)
            elif slot in self.program.outputs:
                self._store(slot, step)

    def _load(self, slot: int, space: str, step: int) -> None:
        """Copy ``slot`` from the home memory to the near memory ``space``."""
        band = self.bands.get(slot)
        if band is None:
            self._emit(Instruction(LOAD, (slot,), (self._new(slot, space),)), step)
        else:
            self._emit(replace(band, op=LOAD, outputs=(self._new(slot, space),)), step)

    def _make_room(
        self, step: int, memory: Memory, needed: int, keep: set[int], instruction: Instruction
    ) -> None:
        """Evict near copies, the one with the farthest next use first, until ``needed`` bytes
        are free.

        An evicted copy that is read again is stored in the home memory first. ``keep`` are the
        slots that ``instruction`` reads, which stay.
        """
        held = self.held[memory.name]
        while memory.size is not None and self._used(memory.name) + needed > memory.size:
            evictable = [slot for slot in held if slot not in keep]
            if not evictable:
                raise self._too_large(step, memory, instruction, needed, keep)
            evicted = max(evictable, key=lambda slot: (self._next_read(slot, step), -slot))
            if self._next_read(evicted, step) >= 0:
                self._store(evicted, step)
            del held[evicted]

    def _store(self, slot: int, step: int) -> None:
        """Copy ``slot`` to the home memory unless it is there; a band is there, in its slot."""
        if slot in self.stored or slot in self.bands:
            return
        near_slot = next(held[slot] for held in self.held.values() if slot in held)
        self._emit(Instruction(STORE, (near_slot,), (slot,)), step)
        self.stored.add(slot)

    def _new(self, slot: int, space: str) -> int:
        """Return a new slot for the copy of ``slot`` in the memory ``space``."""
        described = replace(self.program.slots[slot], space=space)
        self.held[space][slot] = self.staged.new_slot(described)
        return self.held[space][slot]

    def _emit(
        self, instruction: Instruction, step: int, extra: Mapping[str, int] | None = None
    ) -> None:
        """Append an instruction, and note the live bytes of each near memory, ``extra`` ones
        included."""
        origin = instruction.origin or self.program.instructions[step].origin
        self.staged.instructions.append(replace(instruction, origin=origin))
        extra_bytes = extra or {}
        self.live.append({name: self._used(name) + extra_bytes.get(name, 0) for name in self.near})

    def _used(self, space: str) -> int:
        """Return the bytes that the slots held in ``space`` use."""
        return sum(self._bytes(slot, space) for slot in self.held[space])

    def _bytes(self, slot: int, space: str) -> int:
        """Return the aligned bytes of ``slot`` in ``space``."""
        return aligned(self.program.slots[slot].nbytes, self.near[space].align)

    def _next_read(self, slot: int, step: int) -> int:
        """Return the next step from ``step`` on that reads ``slot``; -1 if there is none."""
        readers = self.readers.get(slot, [])
        while readers and readers[0] < step:
            readers.pop(0)
        return readers[0] if readers else -1

    def _too_large(
        self, step: int, memory: Memory, instruction: Instruction, needed: int, keep: set[int]
    ) -> Unsupported:
        """Return the error E405 for an instruction that needs more than a near memory holds."""
        operands = [(slot, self.place(instruction, i)) for i, slot in enumerate(instruction.inputs)]
        operands += [(slot, self.place(instruction, None)) for slot in instruction.outputs]
        slots = {slot for slot, space in operands if slot >= 0 and space == memory.name}
        held = self.held[memory.name]
        total = needed + sum(self._bytes(slot, memory.name) for slot in keep if slot in held)
        named = sorted(
            ((self._bytes(s, memory.name), self.program.slots[s].name) for s in slots), reverse=True
        )
        return Unsupported(
            "E405",
            f"the memory {memory.name!r} of {memory.size} bytes is too small for one"
            f" {instruction.op}",
            at=[
                f"step {step} ({instruction.origin or instruction.op})",
                *(f"{size} bytes: {name}" for size, name in named[:8]),
            ],
            why=f"{total} bytes are needed at once",
            fix="split it into tiles (smelt.program.chips.tile_search), or let a fallback run it",
        )
