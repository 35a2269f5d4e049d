"""Static memory planning: an offset in one arena for every storage.

Storages whose live ranges overlap get disjoint bytes. The larger storages are placed first, each in
the lowest gap it fits (greedy by size: Pisarchyk and Lee, "Efficient Memory Management for Deep
Neural Net Inference", 2020). ``bound_bytes``, the most bytes live at one step, is a lower bound. If
greedy by size misses it, storages that did not fit are placed earlier; then a hill climb moves the
storage that ends highest, or one that is live with it, ahead, and keeps no worse plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from smelt.program.instruction import Program
from smelt.program.storage import Assignment, NeedsOf, Owner, Storage, assign_storage, no_needs

ALIGNMENT = 64
"""Bytes: one cache line, and one vector of the widest CPUs in use."""

ATTEMPTS = 30
"""Maximum number of repacks of a plan that misses the bound."""

CLIMB = 400
"""Maximum number of moves of the hill climb."""

ATTEMPTS_WORK = 200_000
"""Maximum of storages times attempts, or moves."""

ATTEMPTS_STEPS = 2_000_000
"""Maximum of live steps of all storages times attempts or moves: weights that are all computed
before the first layer are live for hundreds of steps each."""


Spans: TypeAlias = list[tuple[int, int, int]]
"""First and last step, and the bytes of a storage between them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a plan: a storage, its offset in the arena, and its live range."""

    value: str
    offset: int
    size: int
    first: int
    last: int

    def to_json(self) -> dict[str, str | int]:
        """Return the row as a dict by field name."""
        return {
            "value": self.value,
            "offset": self.offset,
            "size": self.size,
            "first": self.first,
            "last": self.last,
        }


@dataclass(frozen=True)
class MemoryPlan:
    """An arena of ``arena_bytes`` for ``program``.

    ``offsets[i]`` is the offset of ``assignment.arena[i]``. ``scratch_bytes`` is the largest
    scratch space of one instruction, which is part of the arena.
    """

    program: Program
    assignment: Assignment
    offsets: tuple[int, ...]
    arena_bytes: int
    bound_bytes: int
    alignment: int
    scratch_bytes: int

    def offset_of(self, storage: Storage) -> int:
        """Return the offset of an arena storage."""
        return self._offset_by_id[id(storage)]

    @cached_property
    def _offset_by_id(self) -> dict[int, int]:
        """Return the offset of each storage of the arena by the ``id`` of the storage."""
        pairs = zip(self.assignment.arena, self.offsets, strict=True)
        return {id(storage): offset for storage, offset in pairs}

    def rows(self) -> list[Row]:
        """Return the plan as rows, by offset, then by time."""
        rows = [
            Row(self._title(storage), offset, storage.size, storage.first, storage.last)
            for storage, offset in zip(self.assignment.arena, self.offsets, strict=True)
        ]
        return sorted(rows, key=lambda row: (row.offset, row.first, row.value))

    def to_json(self) -> dict[str, object]:
        """Return the whole plan as a dict."""
        return {
            "arena_bytes": self.arena_bytes,
            "bound_bytes": self.bound_bytes,
            "scratch_bytes": self.scratch_bytes,
            "alignment": self.alignment,
            "values": [row.to_json() for row in self.rows()],
        }

    def to_text(self) -> str:
        """Return the whole plan as a table."""
        head = (
            f"arena {self.arena_bytes} bytes, bound {self.bound_bytes}, "
            f"largest scratch {self.scratch_bytes}, alignment {self.alignment}"
        )
        lines = [head, f"{'offset':>12} {'size':>12} {'live':>13}  value"]
        lines += [
            f"{row.offset:>12} {row.size:>12} {row.first:>6}-{row.last:<6}  {row.value}"
            for row in self.rows()
        ]
        return "\n".join(lines) + "\n"

    def _title(self, storage: Storage) -> str:
        """Return the names of the slots of ``storage``, or the step of scratch space."""
        if storage.scratch:
            return f"scratch of step {storage.first}"
        return ", ".join(self.program.slots[slot].name for slot in storage.slots)


def plan_memory(
    program: Program,
    needs_of: NeedsOf = no_needs,
    *,
    alignment: int = ALIGNMENT,
    outputs_in_arena: bool = False,
) -> MemoryPlan:
    """Return the plan of the arena of ``program`` in the order of its instructions."""
    assignment = assign_storage(program, needs_of, outputs_in_arena=outputs_in_arena)
    storages = assignment.arena
    bound = lower_bound(storages, alignment)
    offsets, arena = pack(storages, alignment, bound)
    scratch = max((storage.size for storage in storages if storage.scratch), default=0)
    return MemoryPlan(program, assignment, tuple(offsets), arena, bound, alignment, scratch)


def lower_bound(storages: Sequence[Storage], alignment: int = 1) -> int:
    """Return the most bytes that are live at one step: no plan for this order needs fewer."""
    return max(live_from(storages, alignment).values(), default=0)


def live_from(storages: Sequence[Storage], alignment: int = 1) -> dict[int, int]:
    """Return the live bytes from each step at which they change."""
    changes: dict[int, int] = {}
    for storage in storages:
        for first, last, size in storage.spans():
            changes[first] = changes.get(first, 0) + aligned(size, alignment)
            changes[last + 1] = changes.get(last + 1, 0) - aligned(size, alignment)
    live, live_at = 0, {}
    for step in sorted(changes):
        live += changes[step]
        live_at[step] = live
    return live_at


def pack(storages: Sequence[Storage], alignment: int, bound: int) -> tuple[list[int], int]:
    """Return offsets and arena size: greedy by size, repacked while it misses ``bound``.

    A storage that ends above the bound is promoted in the order, and all are packed again. The
    smallest arena wins, the first of equals.
    """
    spans = [
        [(first, last, aligned(size, alignment)) for first, last, size in storage.spans()]
        for storage in storages
    ]
    sizes = [span[0][2] for span in spans]
    promoted = [0] * len(storages)
    best_offsets: list[int] = []
    best_order: list[int] = []
    arena = -1
    for _ in range(1 + min(ATTEMPTS, _affordable(spans))):
        order = sorted(range(len(storages)), key=lambda i: (-promoted[i], -sizes[i], i))
        offsets = _placed(spans, order)
        total = max((offsets[i] + sizes[i] for i in order), default=0)
        if arena < 0 or total < arena:
            best_offsets, best_order, arena = offsets, order, total
        if arena == bound:
            break
        for i in order:
            if offsets[i] + sizes[i] > bound:
                promoted[i] += 1
    if arena > bound:
        return _climb(storages, spans, bound, best_order, best_offsets)
    return best_offsets, arena


def _affordable(spans: Sequence[Spans]) -> int:
    """Return how many packings the work limits allow; each takes time linear in the live steps."""
    steps = sum(
        last - first + 1 for spans_of_storage in spans for first, last, _ in spans_of_storage
    )
    return min(ATTEMPTS_WORK // max(len(spans), 1), ATTEMPTS_STEPS // max(steps, 1))


def _climb(
    storages: Sequence[Storage],
    spans: Sequence[Spans],
    bound: int,
    order: list[int],
    offsets: list[int],
) -> tuple[list[int], int]:
    """Return better offsets and arena size, found by random changes of the ``order`` of packing.

    Each change packs earlier a storage that ends at the top of the arena, or one that is live
    with it. It is kept unless the arena grows.
    """
    sizes = [span[0][2] for span in spans]
    generator = random.Random(0)
    arena = max(offsets[i] + sizes[i] for i in order)
    for _ in range(min(CLIMB, _affordable(spans))):
        if arena == bound:
            break
        moved_storage = generator.choice([i for i in order if offsets[i] + sizes[i] == arena])
        if generator.random() < 0.5:
            moved_storage = generator.choice(_live_with(storages, moved_storage))
        position = order.index(moved_storage)
        trial = order[:position] + order[position + 1 :]
        trial.insert(generator.randrange(position + 1), moved_storage)
        packed = _placed(spans, trial)
        total = max(packed[i] + sizes[i] for i in trial)
        if total <= arena:
            order, offsets, arena = trial, packed, total
    return offsets, arena


def _live_with(storages: Sequence[Storage], i: int) -> list[int]:
    """Return the storages that are live at some step with storage ``i``, itself included."""
    first, last = storages[i].first, storages[i].last
    return [j for j, other in enumerate(storages) if other.first <= last and first <= other.last]


def _placed(spans: Sequence[Spans], order: Sequence[int]) -> list[int]:
    """Return offsets: each storage, in ``order``, has the lowest offset at which its spans are
    free."""
    offsets = [0] * len(spans)
    placed = _Timeline()
    for i in order:
        # the new storage is too high for a gap if it begins above the end of the gap minus its size
        used = sorted(
            (low - size, high)
            for first, last, size in spans[i]
            if size
            for low, high in placed.at(first, last)
        )
        offset = 0
        for highest_start, high in used:
            if offset <= highest_start:
                break
            offset = max(offset, high)
        offsets[i] = offset
        for first, last, size in spans[i]:
            if size:
                placed.add((offset, offset + size), first, last)
    return offsets


class _Timeline:
    """Ranges of used bytes at each step; adding and querying take time linear in the number of
    steps."""

    def __init__(self) -> None:
        self._live: dict[int, list[tuple[int, int]]] = {}
        self._starting: dict[int, list[tuple[int, int]]] = {}

    def add(self, used: tuple[int, int], first: int, last: int) -> None:
        """Add the byte range ``used`` to the steps from ``first`` to ``last``."""
        self._starting.setdefault(first, []).append(used)
        for step in range(first, last + 1):
            self._live.setdefault(step, []).append(used)

    def at(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the byte ranges used at some step from ``first`` to ``last``, each once."""
        yield from self._live.get(first, ())
        for step in range(first + 1, last + 1):
            yield from self._starting.get(step, ())


def aligned(size: int, alignment: int) -> int:
    """Return ``size`` rounded up to a multiple of ``alignment``."""
    return -(-size // alignment) * alignment


__all__ = [
    "ALIGNMENT",
    "MemoryPlan",
    "Owner",
    "Row",
    "aligned",
    "live_from",
    "lower_bound",
    "pack",
    "plan_memory",
]
