"""The least arena that any order of a Program needs if results are computed in place.

Written apart from the planner, to judge it: no kernel needs scratch space, a view takes no bytes,
and an elementwise result overwrites an operand of its size that nothing reads any more.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

from smelt.native.kernels.epilogue import instruction_of
from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.instruction import RESULT, Instruction, Program

VIEWS = ("Reshape", "Identity")


def unfused(program: Program) -> list[Instruction]:
    """The instructions with each step that finishes a product as an instruction of its own."""
    found = []
    for each in program.instructions:
        parts = [replace(each, epilogue=())]
        for step in each.epilogue:
            last = parts[-1]
            slot = program.new_slot(program.slots[each.outputs[0]])
            parts[-1] = replace(last, outputs=(slot,))
            alone = instruction_of(each, step)
            inputs = [
                slot if place == RESULT else number
                for place, number in zip(step.operands, alone.inputs, strict=True)
            ]
            parts.append(replace(alone, inputs=tuple(inputs)))
        found += parts
    return found


class _Model:
    """Instructions as numbers: ``uses[i]`` are the tensors that ``i`` reads, ``made[i]`` those that
    it makes, ``readers[t]`` the set, as bits, of instructions that touch tensor ``t``."""

    def __init__(self, program: Program) -> None:
        self.steps = unfused(program)
        held = {*program.inputs, *program.outputs, *program.constants}
        self.root: dict[int, int] = {}
        self.size: dict[int, int] = {}
        self.readers: dict[int, int] = {}
        self.uses: list[tuple[int, ...]] = []
        self.made: list[tuple[int, ...]] = []
        self.before: list[int] = []
        maker: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            read = [slot for slot in step.inputs if slot >= 0]
            self.before.append(sum({1 << maker[slot] for slot in read if slot in maker}))
            maker.update((slot, i) for slot in step.outputs)
            for slot in step.outputs:
                view = step.op in VIEWS and slot not in held
                self.root[slot] = self.root.get(read[0], read[0]) if view else slot
                self.size.setdefault(self.root[slot], 0 if slot in held else _bytes(program, slot))
            kept = (self.root.get(slot, slot) for slot in read)
            self.uses.append(tuple(dict.fromkeys(t for t in kept if t in self.size)))
            own = {self.root[slot] for slot in step.outputs} - set(self.uses[-1])
            self.made.append(tuple(own & self.size.keys()))
            for tensor in (*self.uses[-1], *self.made[-1]):
                self.readers[tensor] = self.readers.get(tensor, 0) | 1 << i

    def step(self, done: int, live: int, i: int) -> tuple[int, int]:
        """The bytes that are live during ``i``, and after it."""
        after = done | 1 << i
        dying = [t for t in (*self.uses[i], *self.made[i]) if self.readers[t] & ~after == 0]
        new = sum(self.size[t] for t in self.made[i])
        top = live + new
        if self.steps[i].op in ELEMENTWISE and any(
            t in self.uses[i] and self.size[t] == new for t in dying
        ):
            top -= new
        return top, live + new - sum(self.size[t] for t in dying)


def _bytes(program: Program, slot: int) -> int:
    return program.slots[slot].nbytes


def best_order_bytes(program: Program) -> int:
    """The lowest peak over all orders: sets of done instructions, the lowest peak first."""
    model = _Model(program)
    everything = (1 << len(model.steps)) - 1
    heap = [(0, 0, 0, 0)]
    seen = set()
    while heap:
        peak, _, done, live = heappop(heap)
        if done in seen:
            continue
        seen.add(done)
        if done == everything:
            return peak
        ready = _ready(model, done)
        steps = [(i, *model.step(done, live, i)) for i in ready]
        # What frees as much as it takes, below the peak already paid, makes nothing worse.
        free = [each for each in steps if each[1] <= peak and each[2] <= live]
        for i, top, left in free[:1] or steps:
            item = done | 1 << i
            heappush(heap, (max(peak, top), -item.bit_count(), item, left))
    raise AssertionError("no order runs all instructions")


def _ready(model: _Model, done: int) -> list[int]:
    return [i for i, before in enumerate(model.before) if not done >> i & 1 and before & ~done == 0]
