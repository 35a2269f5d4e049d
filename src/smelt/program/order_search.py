"""Searches the order of a Program that needs the least memory, best-first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from smelt.program.order_problem import OrderProblem


def best_order(problem: OrderProblem, below: int, work: int) -> list[int] | None:
    """Return an order with the lowest peak, if it is under ``below`` and ``work`` steps find it.

    The search is best-first over sets of executed instructions by their peak so far, so the first
    complete set is optimal. A ready instruction that frees at least what it adds, within the
    current peak, is taken at once: delaying it could not lower a later peak. An instruction that
    only grows runs with its successor, so orders of such instructions are not distinguished.
    """
    return _Search(problem, below, work).run()


class _Partial(NamedTuple):
    """A partial order, compared by its peak, then by the number of executed groups (more first).

    ``entry`` is its last entry of the history: the number of the entry before, and the groups that
    ran then. ``done`` and ``ready`` are sets of groups, ``live`` is the number of live bytes.
    """

    peak: int
    minus_count: int
    entry: int
    done: int
    live: int
    ready: int


class _Search:
    """Groups of instructions that run in sequence, named by their last one.

    Sets of groups are integers with one bit each. For each group, ``waits`` is the set of its
    predecessors and ``after`` lists its successors. ``grows`` is the memory that it allocates,
    ``scratch`` the part that it frees at its end. ``frees`` has storages that it may free: the set
    of their users, and their size.
    """

    def __init__(self, problem: OrderProblem, below: int, work: int) -> None:
        """Build the groups and their predecessors, sizes and frees.

        An instruction that only grows joins the group of its only successor, so the search does not
        place it. ``below`` is the peak to beat, ``work`` the number of steps that the search may
        take.
        """
        self.below, self.work = below, work
        count = problem.count
        group_of = list(range(count))
        for instruction in reversed(range(count)):
            if problem.only_grows(instruction):
                group_of[instruction] = group_of[problem.after[instruction][0]]
        self.groups: list[list[int]] = [[] for _ in range(count)]
        self.waits, self.grows = [0] * count, list(problem.scratch)
        self.after: list[list[int]] = [[] for _ in range(count)]
        for instruction, group in enumerate(group_of):
            self.groups[group].append(instruction)
            self.grows[group] += sum(
                problem.size[storage] for storage in problem.writes[instruction]
            )
            for earlier in {group_of[earlier] for earlier in problem.before[instruction]} - {group}:
                self.waits[group] |= 1 << earlier
                if group not in self.after[earlier]:
                    self.after[earlier].append(group)
        self.scratch = problem.scratch
        users_of = [
            sum({1 << group_of[instruction] for instruction in users}) for users in problem.users
        ]
        self.frees = [
            [(users_of[storage], problem.size[storage]) for storage in problem.touched(instruction)]
            for instruction in range(count)
        ]

    def run(self) -> list[int] | None:
        """Return the order with the lowest peak; None if no peak is ``below``, or after ``work``.

        The partial order with the lowest peak is extended next, by each ready group. ``lowest`` is
        the lowest peak known for each executed set, so that the same set is not tried twice.
        """
        first_ready = sum(
            1 << i for i, waits in enumerate(self.waits) if self.groups[i] and not waits
        )
        history: list[tuple[int, tuple[int, ...]]] = [(-1, ())]
        heap = [_Partial(0, 0, 0, 0, 0, first_ready)]
        expanded: set[int] = set()
        lowest = {0: 0}
        while heap and self.work > 0:
            peak, _, previous, done, live, ready = heappop(heap)
            if done in expanded:
                continue
            expanded.add(done)
            done, live, ready, run_at_once = self._take_free(peak, done, live, ready)
            if run_at_once and done in expanded:
                continue
            expanded.add(done)
            history.append((previous, run_at_once))
            current = len(history) - 1
            if not ready:
                return self._order(history, current)
            for group in _members(ready):
                peak_of_step, live_after = self._step(done, live, group)
                top, next_done = max(peak, peak_of_step), done | 1 << group
                if top < self.below and top < lowest.get(next_done, self.below):
                    lowest[next_done] = top
                    history.append((current, (group,)))
                    next_ready = self._ready(next_done, ready, group)
                    count, entry = next_done.bit_count(), len(history) - 1
                    heappush(heap, _Partial(top, -count, entry, next_done, live_after, next_ready))
        return None

    def _take_free(
        self, peak: int, done: int, live: int, ready: int
    ) -> tuple[int, int, int, tuple[int, ...]]:
        """Run each ready group that raises neither the peak nor the live bytes.

        Returns the executed set, the live bytes, the ready set, and the groups that ran, in order.
        """
        run_at_once: list[int] = []
        has_progress = True
        while has_progress:
            has_progress = False
            for i in _members(ready):
                top, live_after = self._step(done, live, i)
                if live_after <= live and top <= peak:
                    done, live = done | 1 << i, live_after
                    ready = self._ready(done, ready, i)
                    run_at_once.append(i)
                    has_progress = True
                    break
        return done, live, ready, tuple(run_at_once)

    def _step(self, done: int, live: int, i: int) -> tuple[int, int]:
        """Return the peak during group ``i`` and the live bytes after it."""
        self.work -= 1
        done |= 1 << i
        peak = live + self.grows[i]
        live_after = peak - self.scratch[i]
        for users, size in self.frees[i]:
            if users & done == users:
                live_after -= size
        return peak, live_after

    def _ready(self, done: int, ready: int, i: int) -> int:
        """Return the ready groups after group ``i`` has run."""
        ready ^= 1 << i
        for j in self.after[i]:
            if self.waits[j] & done == self.waits[j]:
                ready |= 1 << j
        return ready

    def _order(self, history: list[tuple[int, tuple[int, ...]]], position: int) -> list[int]:
        """Return the instructions that ran up to entry ``position`` of ``history``, in order."""
        parts: list[tuple[int, ...]] = []
        while position >= 0:
            position, groups = history[position]
            parts.append(groups)
        return [
            instruction
            for part in reversed(parts)
            for group in part
            for instruction in self.groups[group]
        ]


def _members(numbers: int) -> Iterator[int]:
    """Yield the members of a set of groups, lowest first: the positions of the bits of
    ``numbers``.
    """
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest
