"""Upper bound of the length of a Range whose limit is its start plus a constant.

A loop over rows reads one row by ``Range(i, Min(n, i + 1), 1)``: the bound is 1. The bound sizes
the memory of the result; a run whose Range is longer ends with an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from smelt.program.instruction import Instruction, Program

MOVED = ("Reshape", "Cast", "Identity", "Expand")
"""Instructions that pass on the only element of their first operand."""

MOST_SEARCHED = 100
"""The most instructions between the limit and the start that are searched."""

Producers = Mapping[int, Instruction]


def range_span(program: Program, instruction: Instruction, output: int, axis: int) -> int | None:
    """Return the upper bound of the length of a Range with positive step.

    None unless the limit has the form start + k.
    """
    start, delta, limit = instruction.inputs
    step = program.constants.get(delta)
    if step is None or step.size != 1 or step.reshape(-1)[0] <= 0:
        return None
    producers = {slot: each for each in program.instructions for slot in each.outputs}
    distance = _distance(program, producers, _copied_slot(producers, start), limit)
    return None if distance is None else max(0, math.ceil(distance / float(step.reshape(-1)[0])))


def _copied_slot(producers: Producers, slot: int) -> int:
    """Return the slot that Reshapes, Casts and Expands copied the only element of ``slot`` from."""
    producer = producers.get(slot)
    while producer is not None and producer.op in MOVED:
        slot = producer.inputs[0]
        producer = producers.get(slot)
    return slot


def _distance(program: Program, producers: Producers, start: int, limit: int) -> float | None:
    """Return an upper bound of ``limit - start``, None if there is none.

    Searches the sums and minima that compute ``limit`` for ``start`` plus a constant: ``pending``
    has slots, each with a number; ``limit`` is at most their sum.
    """
    best: float | None = None
    pending = [(_copied_slot(producers, limit), 0.0)]
    for _ in range(MOST_SEARCHED):
        if not pending:
            return best
        slot, addend = pending.pop()
        producer = producers.get(slot)
        if slot == start:
            best = addend if best is None else min(best, addend)
        elif producer is not None and producer.op == "Min":
            pending += [(_copied_slot(producers, each), addend) for each in producer.inputs]
        elif producer is not None and producer.op in ("Add", "Sub"):
            term, other = producer.inputs
            if producer.op == "Add" and term in program.constants:
                term, other = other, term
            constant = program.constants.get(other)
            if constant is not None and constant.size == 1 and np.isfinite(constant.item()):
                number = float(constant.item()) * (-1 if producer.op == "Sub" else 1)
                pending.append((_copied_slot(producers, term), addend + number))
    return best
