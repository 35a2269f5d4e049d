"""The order of a Program as numbers: which bytes each instruction makes, reads and needs.

Both ways to an order, the greedy rule (``schedule.py``) and the search (``order_search.py``), work
on these.
"""

from __future__ import annotations

from collections.abc import Sequence

from smelt.program.instruction import Program
from smelt.program.storage import NeedsOf


class OrderProblem:
    """Storages and instructions as numbers: who writes, who reads, how large.

    ``writes[i]`` and ``reads[i]`` are the storages that instruction ``i`` writes first and reads;
    ``readers[s]`` all instructions that touch storage ``s``; ``before[i]`` what ``i`` waits for.
    """

    def __init__(self, program: Program, needs_of: NeedsOf) -> None:
        self.count = len(program.instructions)
        storage_of: dict[int, int] = {}
        maker: dict[int, int] = {}
        self.size: list[int] = []
        self.readers: list[list[int]] = []
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
            makers = dict.fromkeys(maker[slot] for slot in sources if slot in maker)
            self.before[i] = list(makers)
            for j in makers:
                self.after[j].append(i)
            for slot in sources:
                if slot in storage_of:
                    self._read(i, storage_of[slot])
            for position, slot in enumerate(instruction.outputs):
                if slot < 0:
                    continue
                maker[slot] = i
                shown = -1
                if position == 0 and needs.view_of is not None:
                    shown = storage_of.get(instruction.inputs[needs.view_of], -2)
                if shown == -1:
                    shown = len(self.size)
                    self.size.append(program.slots[slot].most_bytes)
                    self.readers.append([i])
                    self.writes[i].append(shown)
                if shown >= 0:
                    storage_of[slot] = shown
                    if slot in returned:
                        self.size[shown] = 0

    def _read(self, i: int, storage: int) -> None:
        if storage not in self.reads[i]:
            self.reads[i].append(storage)
            self.readers[storage].append(i)

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes live at one step of ``order``."""
        left = [len(readers) for readers in self.readers]
        live = most = 0
        for i in order:
            live += sum(self.size[s] for s in self.writes[i])
            most = max(most, live + self.scratch[i])
            for s in (*self.reads[i], *self.writes[i]):
                left[s] -= 1
                if left[s] == 0:
                    live -= self.size[s]
        return most

    def touched(self, i: int) -> list[int]:
        """The storages that instruction ``i`` reads or writes and that take room."""
        return [s for s in (*self.reads[i], *self.writes[i]) if self.size[s]]

    def only_grows(self, i: int) -> bool:
        """Whether instruction ``i`` may as well run right before the one that waits for it.

        It frees nothing and needs no more room while it runs than after, so to run anything else
        first makes no step dearer.
        """
        if self.scratch[i] or len(self.after[i]) != 1:
            return False
        return set(self.touched(i)) <= set(self.touched(self.after[i][0]))

    def floor(self) -> int:
        """No order has a lower peak: what one instruction touches is live at once."""
        return max(
            (
                self.scratch[i] + sum(self.size[s] for s in (*self.reads[i], *self.writes[i]))
                for i in range(self.count)
            ),
            default=0,
        )
