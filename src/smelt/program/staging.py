"""Stage a Program through a near memory: loads and stores become instructions.

Inputs, constants and outputs live in the home memory; instructions read and write the near one
(the scratchpad of an accelerator). ``Load`` copies a slot, or a box of one, into the near memory;
``Store`` copies back. What does not fit is spilled: the value read farthest in the future goes
first (Belady, 1966), and is loaded again before its next reader. Loads move ahead of the
instruction before and Stores behind the next one, where both fit, so that copies and computations
can overlap: double buffering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from smelt.errors import Unsupported
from smelt.program.instruction import AttributeValue, DotDims, Instruction, Program
from smelt.program.memories import Memory, SpacesPlan, plan_spaces
from smelt.program.memory import aligned
from smelt.program.storage import NeedsOf, no_needs

LOAD, STORE, BAND, JOIN = "Load", "Store", "Band", "Join"

ATTEMPTS = 8
"""How often a plan that leaves gaps is made anew for fewer bytes."""


def plan_staged(
    program: Program,
    home: Memory,
    near: Memory,
    needs_of: NeedsOf = no_needs,
    *,
    double_buffer: bool = True,
) -> SpacesPlan:
    """``program`` staged through ``near``, with an offset for each slot in both memories.

    Raises Unsupported E405 if one instruction alone needs more of ``near`` than there is, or all
    together more of ``home``.
    """
    refusal: Unsupported | None = None
    for ahead in (True, False) if double_buffer else (False,):
        budget = near.size
        for _ in range(ATTEMPTS):
            limit = replace(near, size=budget)
            try:
                staged = stage(program, home, limit, needs_of, double_buffer=ahead)
                return plan_spaces(staged, (home, near), needs_of)
            except Unsupported as error:
                refusal = refusal or error
                if budget is None or budget <= near.align:
                    break
                budget -= max(budget // 16, near.align)
    assert refusal is not None
    raise refusal


def stage(
    program: Program,
    home: Memory,
    near: Memory,
    needs_of: NeedsOf = no_needs,
    *,
    double_buffer: bool = True,
) -> Program:
    """``program`` with Loads and Stores, so that no more than ``near.size`` bytes are live there.

    A ``Band`` of a slot becomes a Load of that box, a ``Join`` one Store for each of its parts.
    """
    stager = _Stager(program, home, near)
    for step, instruction in enumerate(program.instructions):
        stager.step(step, instruction, needs_of(instruction).workspace)
    return _overlapped(stager, near) if double_buffer else stager.made


@dataclass
class _Stager:
    """``near_slot`` is where a slot of ``program`` lies in the near memory now, ``stored`` those
    that the home memory holds too; ``peaks[i]`` are the bytes live at instruction ``i``."""

    program: Program
    home: Memory
    near: Memory
    made: Program = field(init=False)
    near_slot: dict[int, int] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    peaks: list[int] = field(default_factory=list)
    joined: dict[int, tuple[int, Mapping[str, AttributeValue | DotDims]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        program = self.program
        slots = [replace(slot, space=self.home.name) for slot in program.slots]
        self.made = replace(program, slots=slots, instructions=[])
        self.stored.update(program.inputs, program.constants)
        self.readers: dict[int, list[int]] = {}
        for step, instruction in enumerate(program.instructions):
            if instruction.op == JOIN:
                self._plan_join(instruction)
                continue  # its parts are stored as they are written
            for slot in instruction.inputs:
                self.readers.setdefault(slot, []).append(step)

    def _plan_join(self, join: Instruction) -> None:
        axis = join.attributes["axis"]
        assert isinstance(axis, int)
        for slot, first in zip(join.inputs, join.ints("starts"), strict=True):
            size = self.program.slots[slot].shape[axis]
            assert isinstance(size, int)
            box: dict[str, AttributeValue | DotDims] = {"axes": (axis,), "starts": (first,)}
            self.joined[slot] = join.outputs[0], {**box, "stops": (first + size,)}

    def step(self, step: int, instruction: Instruction, workspace: int) -> None:
        if instruction.op == JOIN:
            self.stored.add(instruction.outputs[0])
            return
        if instruction.op == BAND:
            self._band(step, instruction)
        else:
            self._compute(step, instruction, workspace)
        for slot in [s for s in self.near_slot if self._next_read(s, step + 1) < 0]:
            del self.near_slot[slot]

    def _band(self, step: int, band: Instruction) -> None:
        (source,), (target,) = band.inputs, band.outputs
        self._store(source, step)
        self._room(step, self._bytes(target), {target}, band)
        self._emit(replace(band, op=LOAD, outputs=(self._new(target),)), step)

    def _compute(self, step: int, instruction: Instruction, workspace: int) -> None:
        read = list(dict.fromkeys(slot for slot in instruction.inputs if slot >= 0))
        missing = [slot for slot in read if slot not in self.near_slot]
        written = [slot for slot in instruction.outputs if slot >= 0]
        needed = sum(map(self._bytes, (*missing, *written))) + aligned(workspace, self.near.align)
        self._room(step, needed, {*read}, instruction)
        for slot in missing:
            self._emit(Instruction(LOAD, (slot,), (self._new(slot),)), step)
        inputs = tuple(self.near_slot[slot] if slot >= 0 else slot for slot in instruction.inputs)
        outputs = tuple(self._new(slot) if slot >= 0 else slot for slot in instruction.outputs)
        self._emit(replace(instruction, inputs=inputs, outputs=outputs), step, workspace)
        for slot in written:
            if slot in self.joined:
                whole, box = self.joined[slot]
                store = Instruction(STORE, (self.near_slot[slot],), (whole,), box)
                self._emit(store, step)
            elif slot in self.program.outputs:
                self._store(slot, step)

    def _room(self, step: int, needed: int, keep: set[int], instruction: Instruction) -> None:
        """Give up near copies until ``needed`` bytes are free, the one read last first."""
        if self.near.size is None:
            return
        while sum(map(self._bytes, self.near_slot)) + needed > self.near.size:
            victims = [slot for slot in self.near_slot if slot not in keep]
            if not victims:
                raise self._refusal(step, instruction, needed, keep)
            victim = max(victims, key=lambda slot: (self._next_read(slot, step), -slot))
            if self._next_read(victim, step) >= 0:
                self._store(victim, step)
            del self.near_slot[victim]

    def _store(self, slot: int, step: int) -> None:
        """Let the home memory hold ``slot``."""
        if slot not in self.stored:
            self._emit(Instruction(STORE, (self.near_slot[slot],), (slot,)), step)
            self.stored.add(slot)

    def _new(self, slot: int) -> int:
        described = replace(self.program.slots[slot], space=self.near.name)
        self.near_slot[slot] = self.made.new_slot(described)
        return self.near_slot[slot]

    def _emit(self, instruction: Instruction, step: int, workspace: int = 0) -> None:
        origin = instruction.origin or self.program.instructions[step].origin
        self.made.instructions.append(replace(instruction, origin=origin))
        live = sum(map(self._bytes, self.near_slot))
        self.peaks.append(live + aligned(workspace, self.near.align))

    def _bytes(self, slot: int) -> int:
        return aligned(self.program.slots[slot].nbytes, self.near.align)

    def _next_read(self, slot: int, step: int) -> int:
        """The next step from ``step`` on that reads ``slot``; -1 if none does."""
        readers = self.readers.get(slot, [])
        while readers and readers[0] < step:
            readers.pop(0)
        return readers[0] if readers else -1

    def _refusal(
        self, step: int, instruction: Instruction, needed: int, keep: set[int]
    ) -> Unsupported:
        slots = {
            *keep,
            *(slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0),
        }
        total = needed + sum(self._bytes(slot) for slot in keep if slot in self.near_slot)
        named = sorted(((self._bytes(s), self.program.slots[s].name) for s in slots), reverse=True)
        return Unsupported(
            "E405",
            f"the memory {self.near.name!r} of {self.near.size} bytes is too small for one"
            f" {instruction.op}",
            at=[
                f"step {step} ({instruction.origin or instruction.op})",
                *(f"{size} bytes: {name}" for size, name in named[:8]),
            ],
            why=f"{total} bytes are needed at once",
            fix="split it into bands (smelt.program.tiling), or let a fallback run it",
        )


Order = list[tuple[Instruction, int]]
"""Instructions, each with the bytes that are live in the near memory at it."""


def _overlapped(stager: _Stager, near: Memory) -> Program:
    """Loads before the computation that they follow, and Stores behind the next one, where the
    near memory holds what lives longer: a copy then waits for no computation beside it."""
    program, slots = stager.made, stager.made.slots
    order: Order = []
    for item in zip(program.instructions, stager.peaks, strict=True):
        order.append(item)
        if item[0].op == LOAD:
            size = aligned(slots[item[0].outputs[0]].nbytes, near.align)
            _pass_one(order, len(order) - 1, -1, size, near)
    for at in range(len(order) - 1, -1, -1):
        if order[at][0].op == STORE:
            size = aligned(slots[order[at][0].inputs[0]].nbytes, near.align)
            _pass_one(order, at, 1, size, near)
    return replace(program, instructions=[instruction for instruction, _ in order])


def _pass_one(order: Order, at: int, step: int, size: int, near: Memory) -> None:
    """Move the copy at ``at`` backwards or forwards beyond one computation, which it does not
    depend on; the slot of ``size`` bytes is live at all that it passes."""
    moved, peak = order[at]
    passed = False
    while 0 <= at + step < len(order):
        other, live = order[at + step]
        computes = other.op not in (LOAD, STORE)
        depends = set(moved.inputs) & set(other.outputs) or set(moved.outputs) & {
            *other.inputs,
            *(other.outputs if computes else ()),
        }
        full = near.size is not None and live + size > near.size
        if depends or full or (passed and (computes or other.op == moved.op)):
            return
        peak = max(peak, live + size)
        order[at], order[at + step] = (other, live + size), (moved, peak)
        passed |= computes
        at += step
