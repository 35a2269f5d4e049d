"""An order of execution that needs little memory.

Every topological order of a Program computes the same; they differ in the bytes that are live at
once. ``schedule`` compares the given order with a greedy one and, where neither is provably
best, searches the orders best-first. The result is never worse than the given order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from smelt.program.instruction import Program
from smelt.program.memory import lower_bound
from smelt.program.passes import last_use
from smelt.program.storage import NeedsOf, assign_storage, no_needs

SEARCH_WORK = 200_000
"""Steps that the exact search may weigh: a second or less."""

SEARCH_LIMIT = 5_000
"""Programs longer than this are ordered by the greedy rule alone."""


IN_CACHE = 1 << 20
"""Bytes that no search is worth on a machine with caches: 97 % of the time to compile a network of
40 tensors went into saving kilobytes."""


def schedule(program: Program, needs_of: NeedsOf = no_needs, enough: int = 0) -> Program:
    """``program`` with its instructions in an order that needs little memory.

    An order of at most ``enough`` bytes is not searched further. Instructions are shared with
    ``program``; their ``last_use`` is that of the order returned.

    Views share the bytes of what they show; storage of inputs, outputs and constants belongs to
    the caller and costs nothing. Deterministic; the given order wins a tie.
    """
    problem = _Problem(program, needs_of)
    order = given = list(range(problem.count))
    peak, floor = problem.peak(given), problem.floor()
    if peak > floor:
        greedy = problem.greedy()
        greedy_peak = problem.peak(greedy)
        if greedy_peak < peak:
            order, peak = greedy, greedy_peak
    if peak > max(floor, enough) and problem.count <= SEARCH_LIMIT:
        order = problem.search(peak, SEARCH_WORK) or order
    found = program
    if order is not given:
        reordered = replace(program, instructions=[program.instructions[i] for i in order])
        # Results computed in place are not modelled above; they may favour the given order.
        found = min(program, reordered, key=lambda p: planned_bound(p, needs_of))
    last_use.run(found)
    return found


def planned_bound(program: Program, needs_of: NeedsOf = no_needs) -> int:
    """The most arena bytes live at one step of ``program`` as it is ordered, without padding.

    Fills ``last_use`` for that order.
    """
    last_use.run(program)
    return lower_bound(assign_storage(program, needs_of).arena)


class _Problem:
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

    def greedy(self) -> list[int]:
        """Always take the ready instruction that leaves the fewest bytes live."""
        left = [len(readers) for readers in self.readers]
        waiting = [len(before) for before in self.before]
        done = [False] * self.count

        def change(i: int) -> int:
            grown = sum(self.size[s] for s in self.writes[i] if left[s] > 1)
            return grown - sum(self.size[s] for s in self.reads[i] if left[s] == 1)

        heap = [(change(i), i) for i in range(self.count) if waiting[i] == 0]
        heap.sort()
        order: list[int] = []
        while heap:
            _, i = heappop(heap)
            if done[i]:
                continue  # an older, higher estimate of an instruction already taken
            done[i] = True
            order.append(i)
            for s in (*self.reads[i], *self.writes[i]):
                left[s] -= 1
                if left[s] == 1:  # the last reader now frees it: its estimate fell
                    for j in self.readers[s]:
                        if not done[j] and waiting[j] == 0:
                            heappush(heap, (change(j), j))
            for j in self.after[i]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    heappush(heap, (change(j), j))
        return order

    def search(self, below: int, work: int) -> list[int] | None:
        """An order with the lowest peak, if it is under ``below`` and ``work`` steps find it.

        Best-first over sets of executed instructions by their peak so far, so the first complete
        set is optimal. A ready instruction that frees at least what it adds, within the peak
        already paid, is taken at once: waiting could not make any later step cheaper. One that
        only grows runs with what waits for it, so orders of such instructions aren't told apart.
        """
        return _Search(self, below, work).run()


class _Search:
    """Groups of instructions that run one right after the other, named by their last one.

    Sets of groups are integers with a bit for each.
    """

    def __init__(self, problem: _Problem, below: int, work: int) -> None:
        self.below, self.work = below, work
        count = problem.count
        last = list(range(count))
        for i in reversed(range(count)):
            if problem.only_grows(i):
                last[i] = last[problem.after[i][0]]
        self.groups: list[list[int]] = [[] for _ in range(count)]
        self.waits, self.grows = [0] * count, list(problem.scratch)
        self.after: list[list[int]] = [[] for _ in range(count)]
        for i, group in enumerate(last):
            self.groups[group].append(i)
            self.grows[group] += sum(problem.size[s] for s in problem.writes[i])
            for j in {last[j] for j in problem.before[i]} - {group}:
                self.waits[group] |= 1 << j
                if group not in self.after[j]:
                    self.after[j].append(group)
        self.scratch = problem.scratch
        readers = [sum({1 << last[i] for i in readers}) for readers in problem.readers]
        self.frees = [
            [(readers[s], problem.size[s]) for s in problem.touched(i)] for i in range(count)
        ]

    def run(self) -> list[int] | None:
        first = sum(1 << i for i, waits in enumerate(self.waits) if self.groups[i] and not waits)
        trails: list[tuple[int, tuple[int, ...]]] = [(-1, ())]
        heap = [(0, 0, 0, 0, 0, first)]
        expanded: set[int] = set()
        lowest = {0: 0}
        while heap and self.work > 0:
            peak, _, trail, done, live, ready = heappop(heap)
            if done in expanded:
                continue
            expanded.add(done)
            done, live, ready, taken = self._take_free(peak, done, live, ready)
            if taken and done in expanded:
                continue
            expanded.add(done)
            trails.append((trail, taken))
            here = len(trails) - 1
            if not ready:
                return self._order(trails, here)
            for i in _members(ready):
                top, after = self._step(done, live, i)
                top, then = max(peak, top), done | 1 << i
                if top < self.below and top < lowest.get(then, self.below):
                    lowest[then] = top
                    trails.append((here, (i,)))
                    item = (top, -then.bit_count(), len(trails) - 1, then, after)
                    heappush(heap, (*item, self._ready(then, ready, i)))
        return None

    def _take_free(
        self, peak: int, done: int, live: int, ready: int
    ) -> tuple[int, int, int, tuple[int, ...]]:
        """Run every ready instruction that costs nothing now or later."""
        taken: list[int] = []
        again = True
        while again:
            again = False
            for i in _members(ready):
                top, after = self._step(done, live, i)
                if after <= live and top <= peak:
                    done, live = done | 1 << i, after
                    ready = self._ready(done, ready, i)
                    taken.append(i)
                    again = True
                    break
        return done, live, ready, tuple(taken)

    def _step(self, done: int, live: int, i: int) -> tuple[int, int]:
        """Peak during instruction ``i`` and live bytes after it."""
        self.work -= 1
        done |= 1 << i
        top = live + self.grows[i]
        after = top - self.scratch[i]
        for readers, size in self.frees[i]:
            if readers & done == readers:
                after -= size
        return top, after

    def _ready(self, done: int, ready: int, i: int) -> int:
        ready ^= 1 << i
        for j in self.after[i]:
            if self.waits[j] & done == self.waits[j]:
                ready |= 1 << j
        return ready

    def _order(self, trails: list[tuple[int, tuple[int, ...]]], at: int) -> list[int]:
        parts: list[tuple[int, ...]] = []
        while at >= 0:
            at, taken = trails[at]
            parts.append(taken)
        return [i for part in reversed(parts) for group in part for i in self.groups[group]]


def _members(numbers: int) -> Iterator[int]:
    """The bits that are set, from the lowest."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest
