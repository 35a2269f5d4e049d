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
        for i, instruction in enumerate(program.instructions):
            needs = needs_of(instruction)
            self.scratch[i] = needs.workspace
            sources = list(dict.fromkeys(slot for slot in instruction.inputs if slot >= 0))
            writers = dict.fromkeys(writer_of[slot] for slot in sources if slot in writer_of)
            self.before[i] = list(writers)
            for j in writers:
                self.after[j].append(i)
            for slot in sources:
                if slot in storage_of:
                    self._note_read(i, storage_of[slot])
            for position, slot in enumerate(instruction.outputs):
                if slot < 0:
                    continue
                writer_of[slot] = i
                if position == 0 and needs.view_of is not None:
                    storage = storage_of.get(instruction.inputs[needs.view_of])
                else:
                    storage = self._new_storage(i, program.slots[slot].most_bytes)
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

    def _note_read(self, i: int, storage: int) -> None:
        """Note that instruction ``i`` reads ``storage``."""
        if storage not in self.reads[i]:
            self.reads[i].append(storage)
            self.users[storage].append(i)

    def peak(self, order: Sequence[int]) -> int:
        """Return the most bytes live at one step of ``order``."""
        users_left = [len(users) for users in self.users]
        live = most = 0
        for i in order:
            live += sum(self.size[s] for s in self.writes[i])
            most = max(most, live + self.scratch[i])
            for s in (*self.reads[i], *self.writes[i]):
                users_left[s] -= 1
                if users_left[s] == 0:
                    live -= self.size[s]
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
                self.scratch[i] + sum(self.size[s] for s in (*self.reads[i], *self.writes[i]))
                for i in range(self.count)
            ),
            default=0,
        )
