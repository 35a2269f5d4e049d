"""Reorders a Program so that it needs little memory.

Every topological order of a Program computes the same; they differ in the bytes that are live at
once. ``schedule`` compares the given order with a greedy one and, if neither is provably optimal,
searches the orders best-first. The result is never worse than the given order.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

from smelt.program.instruction import Program
from smelt.program.memory import lower_bound
from smelt.program.order_problem import OrderProblem
from smelt.program.order_search import best_order
from smelt.program.passes import last_use
from smelt.program.storage import NeedsOf, assign_storage, no_needs

SEARCH_WORK = 200_000
"""Maximum number of steps of the exact search: a second or less."""

SEARCH_LIMIT = 5_000
"""Longer programs are ordered by the greedy rule alone."""


IN_CACHE = 1 << 20
"""Peak below which no search pays off on a machine with caches: 97 % of the time to compile a
network of 40 tensors went into saving kilobytes."""


def schedule(program: Program, needs_of: NeedsOf = no_needs, enough: int = 0) -> Program:
    """Return ``program`` with its instructions in an order that needs little memory.

    An order of at most ``enough`` bytes is not searched further. Instructions are shared with
    ``program``; their ``last_use`` is that of the returned order. Views share the bytes of their
    source; storage of inputs, outputs and constants belongs to the caller and costs nothing.
    Deterministic; the given order wins a tie.
    """
    problem = OrderProblem(program, needs_of)
    order = given_order = list(range(problem.count))
    peak, floor = problem.peak(given_order), problem.floor()
    if peak > floor:
        greedy = _greedy(problem)
        greedy_peak = problem.peak(greedy)
        if greedy_peak < peak:
            order, peak = greedy, greedy_peak
    if peak > max(floor, enough) and problem.count <= SEARCH_LIMIT:
        order = best_order(problem, peak, SEARCH_WORK) or order
    best = program
    if order is not given_order:
        reordered = replace(program, instructions=[program.instructions[i] for i in order])
        # Results computed in place are not modelled above; they may favour the given order.
        best = min(program, reordered, key=lambda p: planned_bound(p, needs_of))
    last_use.run(best)
    return best


def planned_bound(program: Program, needs_of: NeedsOf = no_needs) -> int:
    """Return the most arena bytes live at one step of ``program`` in its present order, without
    padding.

    Sets ``last_use`` for that order.
    """
    last_use.run(program)
    return lower_bound(assign_storage(program, needs_of).arena)


def _greedy(problem: OrderProblem) -> list[int]:
    """Return the order that always takes the ready instruction after which the fewest bytes are
    live."""
    users_left = [len(users) for users in problem.users]
    writers_left = [len(before) for before in problem.before]
    is_taken = [False] * problem.count

    def change(instruction: int) -> int:
        """Return the change of the live bytes if ``instruction`` runs next.

        The writer of a storage is one of its users, so a storage that nobody reads is not live
        afterwards.
        """
        allocated = sum(
            problem.size[storage]
            for storage in problem.writes[instruction]
            if users_left[storage] > 1
        )
        return allocated - sum(
            problem.size[storage]
            for storage in problem.reads[instruction]
            if users_left[storage] == 1
        )

    heap = [
        (change(instruction), instruction)
        for instruction in range(problem.count)
        if writers_left[instruction] == 0
    ]
    heap.sort()
    order: list[int] = []
    while heap:
        _, instruction = heappop(heap)
        if is_taken[instruction]:
            continue  # an older, higher estimate of an instruction already taken
        is_taken[instruction] = True
        order.append(instruction)
        for storage in (*problem.reads[instruction], *problem.writes[instruction]):
            users_left[storage] -= 1
            if users_left[storage] == 1:  # the last user now frees it: its estimate fell
                for other in problem.users[storage]:
                    if not is_taken[other] and writers_left[other] == 0:
                        heappush(heap, (change(other), other))
        for other in problem.after[instruction]:
            writers_left[other] -= 1
            if writers_left[other] == 0:
                heappush(heap, (change(other), other))
    return order
