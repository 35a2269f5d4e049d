"""The scheduling problem of a Program as numbers: bytes that instructions write, read and need.

Both schedulers, the greedy rule (``schedule.py``) and the search (``order_search.py``), use it.
"""

from __future__ import annotations

from collections.abc import Sequence

from smelt.program.instruction import Program
from smelt.program.storage import NeedsOf


class OrderProblem:
    """Storages and instructions as numbers.

    ``writes[i]`` and ``reads[i]`` are the storages that instruction ``i`` writes first and reads;
    ``users[s]`` all instructions that use storage ``s``; ``before[i]`` the predecessors of ``i``.
    """

    def __init__(self, program: Program, needs_of: NeedsOf) -> None:
        """Number the storages of ``program``; views share the storage of their operand."""
        self.count = len(program.instructions)
        storage_of: dict[int, int] = {}
        writer_of: dict[int, int] = {}
        self.size: list[int] = []
        self.users: list[list[int]] = []
        self.writes: list[list[int]] = [[] for _ in range(self.count)]
        self.reads: list[list[int]] = [[] for _ in range(self.count)]
        self.before: list[list[int]] = [[] for _ in range(self.count)]
        self.after: list[list[int]] = [[] for _ in range(self.count)]
        self.scratch: list[int] = [0] * self.count
        returned = set(program.outputs)
        for step, instruction in enumerate(program.instructions):
            needs = needs_of(instruction)
            self.scratch[step] = needs.workspace
            sources = list(dict.fromkeys(slot for slot in instruction.inputs if slot >= 0))
            writer_steps = dict.fromkeys(writer_of[slot] for slot in sources if slot in writer_of)
            self.before[step] = list(writer_steps)
            for writer_step in writer_steps:
                self.after[writer_step].append(step)
            for slot in sources:
                if slot in storage_of:
                    self._note_read(step, storage_of[slot])
            for position, slot in enumerate(instruction.outputs):
                if slot < 0:
                    continue
                writer_of[slot] = step
                if position == 0 and needs.view_of is not None:
                    storage = storage_of.get(instruction.inputs[needs.view_of])
                else:
                    storage = self._new_storage(step, program.slots[slot].most_bytes)
                if storage is not None:  # None for a view of an input or a constant
                    storage_of[slot] = storage
                    if slot in returned:  # the caller provides its memory
                        self.size[storage] = 0

    def _new_storage(self, i: int, size: int) -> int:
        """Return the number of a new storage of ``size`` bytes that instruction ``i`` writes."""
        storage = len(self.size)
        self.size.append(size)
        self.users.append([i])
        self.writes[i].append(storage)
        return storage

    def _note_read(self, step: int, storage: int) -> None:
        """Note that the instruction at ``step`` reads ``storage``, once."""
        if storage not in self.reads[step]:
            self.reads[step].append(storage)
            self.users[storage].append(step)

    def peak(self, order: Sequence[int]) -> int:
        """Return the most bytes live at one step of ``order``."""
        users_left = [len(users) for users in self.users]
        live = most = 0
        for step in order:
            live += sum(self.size[storage] for storage in self.writes[step])
            most = max(most, live + self.scratch[step])
            for storage in (*self.reads[step], *self.writes[step]):
                users_left[storage] -= 1
                if users_left[storage] == 0:
                    live -= self.size[storage]
        return most

    def touched(self, i: int) -> list[int]:
        """Return the storages of nonzero size that instruction ``i`` reads or writes."""
        return [s for s in (*self.reads[i], *self.writes[i]) if self.size[s]]

    def only_grows(self, i: int) -> bool:
        """True if instruction ``i`` may run right before its only successor without loss.

        It frees nothing and needs no more memory while it runs than after, so running anything else
        first lowers no peak.
        """
        if self.scratch[i] or len(self.after[i]) != 1:
            return False
        return set(self.touched(i)) <= set(self.touched(self.after[i][0]))

    def floor(self) -> int:
        """Return a lower bound of the peak: all storages that one instruction uses are live at
        once.
        """
        return max(
            (
                self.scratch[step]
                + sum(self.size[storage] for storage in (*self.reads[step], *self.writes[step]))
                for step in range(self.count)
            ),
            default=0,
        )
