"""Upper bounds of data-dependent result sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from smelt.native.range_span import range_span
from smelt.program.carried_sizes import max_iterations
from smelt.program.instruction import (
    DYNAMIC_EXPAND,
    DYNAMIC_PAD,
    DYNAMIC_RANGE,
    DYNAMIC_RESHAPE,
    DYNAMIC_SLICE,
    DYNAMIC_TILE,
    DYNAMIC_TOP_K,
    Instruction,
    Program,
)
from smelt.program.resolve_sizes import Capacity
from smelt.program.run_sizes import highest


def _sizes(program: Program, instruction: Instruction, position: int) -> list[int]:
    """Return the sizes of an input in the largest run."""
    return [highest(size) for size in program.slots[instruction.inputs[position]].sizes]


def _every_element(
    program: Program, instruction: Instruction, output: int, axis: int
) -> int | None:
    """Return the number of elements of the operand: NonZero may find all of them."""
    return math.prod(_sizes(program, instruction, 0))


def _same_axis(program: Program, instruction: Instruction, output: int, axis: int) -> int | None:
    """Return the operand's size along the axis: the result is at most as long."""
    return _sizes(program, instruction, 0)[axis]


def _every_box(program: Program, instruction: Instruction, output: int, axis: int) -> int | None:
    """Return the most boxes that NonMaxSuppression may select: all per batch and class, up to a
    constant limit.
    """
    batch, classes, count = _sizes(program, instruction, 1)
    most = program.constants.get(instruction.inputs[2])
    chosen = count if most is None else max(0, min(count, int(most.reshape(-1)[0])))
    return batch * classes * chosen


def _as_declared(program: Program, instruction: Instruction, output: int, axis: int) -> int | None:
    """Return None: the size is the value of an operand, which only a declared bound limits."""
    return None


def _larger_branch(
    program: Program, instruction: Instruction, output: int, axis: int
) -> int | None:
    """Return the larger of the bounds of both branches of an If."""
    bodies = [body.program for body in instruction.bodies]
    return max(highest(body.slots[body.outputs[output]].sizes[axis]) for body in bodies)


def _loop_result_bound(
    program: Program, instruction: Instruction, output: int, axis: int
) -> int | None:
    """Return the bound of a Loop's result.

    A state has the bound of the body's input; stacked rows have the bound of the iteration count.
    """
    states, counted = instruction.attributes["states"], bool(instruction.attributes["counted"])
    assert isinstance(states, int)
    if output >= states:
        return max_iterations(instruction) if axis == 0 else None
    body = instruction.bodies[0].program
    return highest(body.slots[body.inputs[2 * counted + output]].sizes[axis])


CAPACITIES: Mapping[str, Capacity] = {
    "NonZero": _every_element,
    "Compress": _same_axis,
    "Unique": _same_axis,
    "NonMaxSuppression": _every_box,
    DYNAMIC_SLICE: _same_axis,
    DYNAMIC_TOP_K: _same_axis,
    DYNAMIC_PAD: _as_declared,
    DYNAMIC_TILE: _as_declared,
    DYNAMIC_EXPAND: _as_declared,
    DYNAMIC_RANGE: range_span,
    DYNAMIC_RESHAPE: _as_declared,
    "Loop": _loop_result_bound,
    "If": _larger_branch,
}
"""Operator to a function of program, instruction, output and axis that returns an upper bound of
that size; None if only the model or ``--dim`` can bound it."""
