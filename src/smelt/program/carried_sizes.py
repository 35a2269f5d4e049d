"""Bounds of the sizes of loop states that an iteration may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

import onnx_ir as ir

from smelt.program.computed_sizes import Sizes, is_symbol
from smelt.program.growth import after_iterations
from smelt.program.instruction import Dim, Instruction, Program, Slot
from smelt.program.monomials import Bounds
from smelt.program.run_sizes import Size, Undecided, highest, lowest
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
    """Return bounds of the sizes of loop states by symbol of the body, where they can be derived.

    They follow from the number of iterations times the growth per iteration, from the bounds
    ``declared`` for the symbol of the result, or from a ``trial`` of the body.
    """
    bounds_of: dict[str, Bounds] = {}
    unbounded: dict[str, tuple[int, int, int]] = {}
    starts_are_known = True
    for state, axis, (initial, before, after, result) in _carried_axes(program, loop, sizes):
        initial_size, result_size = size_in(initial.shape[axis], sizes), result.shape[axis]
        symbol = str(before.shape[axis])
        growth = _growth(before.shape[axis], after.shape[axis], sizes)
        result_bounds = (
            (0, result_size) if isinstance(result_size, int) else declared(str(result_size))
        )
        bounds = _bounds_of_growth(initial_size, growth, max_iterations(loop), result_bounds)
        if bounds is not None:
            bounds_of[symbol] = bounds
        elif isinstance(initial_size, ir.SymbolicDim):
            starts_are_known = False
        else:
            unbounded[symbol] = (highest(initial_size), state, axis)
    if unbounded and starts_are_known:  # a trial starts from known sizes
        return bounds_of | _bounds_by_trial(loop, bounds_of, unbounded, trial)
    return bounds_of


def _carried_axes(
    program: Program, loop: Instruction, sizes: Sizes
) -> Iterator[tuple[int, int, tuple[Slot, Slot, Slot, Slot]]]:
    """Yield the number, the axis and the slots of each state whose size along the axis is a symbol
    of the body.
    """
    for state, slots in enumerate(_states(program, loop)):
        initial, before, _, _ = slots
        if len(initial.shape) != len(before.shape):
            continue
        for axis, dim in enumerate(before.shape):
            if is_symbol(dim) and str(dim) not in sizes:
                yield state, axis, slots


def _bounds_by_trial(
    loop: Instruction,
    known: Mapping[str, Bounds],
    unbounded: Mapping[str, tuple[int, int, int]],
    trial: Trial,
) -> dict[str, Bounds]:
    """Return bounds by symbol, measured by trials of the body; empty if a trial leaves a size
    unknown.

    ``unbounded`` has for each symbol the largest initial size, the state and the axis.
    """
    body, head = loop.bodies[0].program, int(bool(loop.attributes["counted"]))

    def iterate(largest: Mapping[str, int]) -> dict[str, int] | None:
        """Return the sizes after one trial of the body; None if one is unknown."""
        tried = trial(body, {**known, **{name: (0, size) for name, size in largest.items()}})
        new_bounds = {}
        for name, (_, state, axis) in unbounded.items():
            size = tried.slots[tried.outputs[head + state]].shape[axis]
            if isinstance(size, ir.SymbolicDim):
                return None
            new_bounds[name] = highest(size)
        return new_bounds

    start = {name: size for name, (size, _, _) in unbounded.items()}
    ends = after_iterations(start, max_iterations(loop), iterate)
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


def _growth(before: Dim, after: Dim, sizes: Sizes) -> int | Size | None:
    """Return the growth of a size per iteration; None if it is unknown before a run."""
    try:
        step = number_in(after - before, sizes)
    except Undecided:
        return None  # one is a symbol that no run binds, the other has bounds
    return None if isinstance(step, ir.SymbolicDim) else step


def max_iterations(loop: Instruction) -> int | None:
    """Return the maximum number of iterations of a Loop; None if it depends on data."""
    trip, most = loop.attributes["trip"], cast("tuple[Dim, ...]", loop.attributes["most"])
    if isinstance(trip, int) and trip >= 0:
        return trip
    if not most or isinstance(most[0], ir.SymbolicDim):
        return None
    return max(0, highest(most[0]))


def _bounds_of_growth(
    start: Dim | Size, step: int | Size | None, iterations: int | None, declared: Bounds | None
) -> Bounds | None:
    """Return the bounds of a size that starts at ``start`` and grows by ``step`` per iteration;
    None if nothing limits it.
    """
    if isinstance(start, ir.SymbolicDim):
        return None
    growth = None if step is None else max(0, highest(step))
    maxima = [] if declared is None else [max(declared[1], highest(start))]
    if growth is not None and (growth == 0 or iterations is not None):
        maxima.append(highest(start) + growth * (iterations or 0))
    shrinks = step is None or lowest(step) < 0
    return (0 if shrinks else lowest(start), min(maxima)) if maxima else None
