"""Bounds of the sizes of loop states that an iteration may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

import onnx_ir as ir

from smelt.program.computed_sizes import Sizes, is_symbol
from smelt.program.growth import after_rounds
from smelt.program.instruction import Dim, Instruction, Program, Slot
from smelt.program.run_sizes import Bounds, Size, Undecided, highest, lowest
from smelt.program.size_expressions import number_in, size_in

Trial: TypeAlias = Callable[[Program, Mapping[str, Bounds]], Program]
"""Returns a copy of a body, resolved for these bounds of its symbols."""


def carried_sizes(
    program: Program,
    loop: Instruction,
    sizes: Sizes,
    declared: Callable[[str], Bounds | None],
    trial: Trial,
) -> dict[str, Bounds]:
    """Return bounds by symbol of the body, where they can be found.

    Sources are the number of iterations times the growth per iteration, the bounds ``declared`` for
    the symbol of the result, or a ``trial`` of the body.
    """
    found: dict[str, Bounds] = {}
    open_: dict[str, tuple[int, int, int]] = {}
    tells = True
    for place, (first, before, after, result) in enumerate(_states(program, loop)):
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
            elif isinstance(start, ir.SymbolicDim):
                tells = False
            else:
                open_[str(dim)] = (highest(start), place, axis)
    return found | _tried(loop, found, open_, trial) if open_ and tells else found


def _tried(
    loop: Instruction,
    known: Mapping[str, Bounds],
    open_: Mapping[str, tuple[int, int, int]],
    trial: Trial,
) -> dict[str, Bounds]:
    """Return the bounds of symbols that only a trial of the body tells.

    ``open_`` gives for each symbol the largest initial size, the state and the axis.
    """
    body, head = loop.bodies[0].program, int(bool(loop.attributes["counted"]))

    def one(largest: Mapping[str, int]) -> dict[str, int] | None:
        """Return the sizes after one trial of the body, or None if one is not known."""
        tried = trial(body, {**known, **{name: (0, size) for name, size in largest.items()}})
        left = {}
        for name, (_, place, axis) in open_.items():
            size = tried.slots[tried.outputs[head + place]].shape[axis]
            if isinstance(size, ir.SymbolicDim):
                return None
            left[name] = highest(size)
        return left

    start = {name: size for name, (size, _, _) in open_.items()}
    ends = after_rounds(start, rounds_of(loop), one)
    return {} if ends is None else {name: (0, size) for name, size in ends.items()}


def _states(program: Program, loop: Instruction) -> Iterator[tuple[Slot, Slot, Slot, Slot]]:
    """Yield each state as slots: initial value, body input, body output, result."""
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
    """Return the growth of a size per iteration; None if it is not known beforehand."""
    try:
        step = number_in(after - before, sizes)
    except Undecided:
        return None  # one of them has a name that no run tells, the other has bounds
    return None if isinstance(step, ir.SymbolicDim) else step


def rounds_of(loop: Instruction) -> int | None:
    """Return the maximum number of iterations of a Loop, if it does not depend on data, else
    None."""
    trip, most = loop.attributes["trip"], cast("tuple[Dim, ...]", loop.attributes["most"])
    if isinstance(trip, int) and trip >= 0:
        return trip
    if not most or isinstance(most[0], ir.SymbolicDim):
        return None
    return max(0, highest(most[0]))


def _ends(
    start: Dim | Size, step: int | Size | None, rounds: int | None, declared: Bounds | None
) -> Bounds | None:
    """Return the bounds of a size that starts at ``start`` and grows by ``step`` per iteration."""
    if isinstance(start, ir.SymbolicDim):
        return None
    growth = None if step is None else max(0, highest(step))
    most = [] if declared is None else [max(declared[1], highest(start))]
    if growth is not None and (growth == 0 or rounds is not None):
        most.append(highest(start) + growth * (rounds or 0))
    shrinks = step is None or lowest(step) < 0
    return (0 if shrinks else lowest(start), min(most)) if most else None
