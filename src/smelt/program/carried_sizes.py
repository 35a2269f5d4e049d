"""Bounds of the sizes of states that each round of a Loop may leave otherwise than it got them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import onnx_ir as ir

from smelt.program.computed_sizes import Sizes, is_symbol
from smelt.program.instruction import Dim, Instruction, Program, Slot
from smelt.program.run_sizes import Bounds, Size, highest, lowest
from smelt.program.size_expressions import number_in, size_in


def carried_sizes(
    program: Program, loop: Instruction, sizes: Sizes, declared: Callable[[str], Bounds | None]
) -> dict[str, Bounds]:
    """By symbol of the body, where something tells: the rounds and what one adds, or what is
    ``declared`` for the symbol of the result."""
    found: dict[str, Bounds] = {}
    for first, before, after, result in _states(program, loop):
        if len(first.shape) != len(before.shape):
            continue
        for axis, dim in enumerate(before.shape):
            if not is_symbol(dim) or str(dim) in sizes:
                continue
            start, end = size_in(first.shape[axis], sizes), result.shape[axis]
            step = _step(dim, after.shape[axis], sizes)
            known = (0, end) if isinstance(end, int) else declared(str(end))
            ends = _ends(start, step, rounds_of(loop), known)
            if ends is not None:
                found[str(dim)] = ends
    return found


def _states(program: Program, loop: Instruction) -> Iterator[tuple[Slot, Slot, Slot, Slot]]:
    """How each state starts, what a round gets and leaves, and the result."""
    body, states = loop.bodies[0].program, loop.attributes["states"]
    head = int(bool(loop.attributes["counted"]))
    assert isinstance(states, int)
    for i in range(states):
        before, after = body.inputs[2 * head + i], body.outputs[head + i]
        yield (
            program.slots[loop.inputs[2 + i]],
            body.slots[before],
            body.slots[after],
            program.slots[loop.outputs[i]],
        )


def _step(before: Dim, after: Dim, sizes: Sizes) -> int | Size | None:
    """What a round adds to a size; None if that is not known before it."""
    step = number_in(after - before, sizes)
    return None if isinstance(step, ir.SymbolicDim) else step


def rounds_of(loop: Instruction) -> int | None:
    """The most rounds of a Loop, if something but its data tells."""
    trip, most = loop.attributes["trip"], cast("tuple[Dim, ...]", loop.attributes["most"])
    if isinstance(trip, int) and trip >= 0:
        return trip
    if not most or isinstance(most[0], ir.SymbolicDim):
        return None
    return max(0, highest(most[0]))


def _ends(
    start: Dim | Size, step: int | Size | None, rounds: int | None, declared: Bounds | None
) -> Bounds | None:
    """The bounds of a size that begins with ``start`` and grows by ``step`` in each round."""
    if isinstance(start, ir.SymbolicDim):
        return None
    growth = None if step is None else max(0, highest(step))
    most = [] if declared is None else [max(declared[1], highest(start))]
    if growth is not None and (growth == 0 or rounds is not None):
        most.append(highest(start) + growth * (rounds or 0))
    shrinks = step is None or lowest(step) < 0
    return (0 if shrinks else lowest(start), min(most)) if most else None
