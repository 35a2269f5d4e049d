"""Run a Program instruction by instruction: copies by NumPy, everything else by the host's kernels.

Slow, and without a planner: what tiling, staging and layouts make is held against it. Values are
tensors here, whatever the order in which they lie in memory; constants are unpacked first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from smelt.program.chips.layouts import RELAYOUT
from smelt.program.chips.overlap import LOAD, STORE
from smelt.program.chips.staging import BAND, JOIN
from smelt.program.chips.summing import STAGE, SUMMED, Summing
from smelt.program.chips.tile_regions import REGIONS, Region
from smelt.program.instruction import Instruction, Program
from smelt.targets.host.runner import HostRunner


def run(program: Program, *inputs: np.ndarray) -> list[np.ndarray]:
    """The outputs; a slot that is read before all of it was written raises."""
    known: dict[int, np.ndarray] = {
        **{slot: program.slots[slot].unpack(array) for slot, array in program.constants.items()},
        **dict(zip(program.inputs, inputs, strict=True)),
    }
    for instruction in program.instructions:
        operands = [known[slot] for slot in instruction.inputs if slot >= 0]
        if instruction.op in (LOAD, BAND, RELAYOUT):
            known[instruction.outputs[0]] = operands[0][box(instruction, operands[0].ndim)].copy()
        elif instruction.op == STORE:
            slot = program.slots[instruction.outputs[0]]
            whole = known.setdefault(
                instruction.outputs[0], np.empty(slot.shape, slot.dtype.numpy())
            )
            whole[box(instruction, whole.ndim)] = operands[0]
        elif instruction.op == JOIN:
            known[instruction.outputs[0]] = together(program, instruction, operands)
        else:
            known.update(
                zip(instruction.outputs, computed(program, instruction, operands), strict=True)
            )
    return [known[slot] for slot in program.outputs]


def together(program: Program, join: Instruction, parts: Sequence[np.ndarray]) -> np.ndarray:
    """The tiles in their places, each element once."""
    slot = program.slots[join.outputs[0]]
    whole, written = np.empty(slot.sizes, slot.dtype.numpy()), np.zeros(slot.sizes, int)
    axes = join.ints("axes")
    starts = np.reshape(join.ints("starts"), (-1, len(axes)))
    for part, first in zip(parts, starts, strict=True):
        at = [slice(None)] * whole.ndim
        for axis, start in zip(axes, first, strict=True):
            at[axis] = slice(start, start + part.shape[axis])
        whole[tuple(at)] = part
        written[tuple(at)] += 1
    assert (written == 1).all()
    return whole


def box(instruction: Instruction, rank: int) -> tuple[slice, ...]:
    """The part of the home tensor that a copy is of; all of it without one."""
    attributes: Mapping[str, object] = instruction.attributes
    found = [slice(None)] * rank
    if "axes" in attributes:
        bounds = (attributes[name] for name in ("axes", "starts", "stops"))
        for axis, start, stop in zip(*bounds, strict=True):  # type: ignore[call-overload]
            found[axis] = slice(start, stop)
    return tuple(found)


def computed(
    program: Program, instruction: Instruction, operands: Sequence[np.ndarray]
) -> Sequence[np.ndarray]:
    if STAGE in instruction.attributes:  # of a product that goes on from the sum so far
        x, w, *so_far = operands
        return [x @ w + sum(so_far)]
    inputs = tuple(slot for slot in instruction.inputs if slot >= 0)
    distinct = tuple(dict.fromkeys(inputs))
    alone = replace(
        program,
        inputs=distinct,
        outputs=instruction.outputs,
        constants={},
        instructions=[replace(instruction, last_use=())],
    )
    arrays = dict(zip(inputs, operands, strict=True))
    return HostRunner(alone, {})(*(arrays[slot] for slot in distinct))


def terms(program: Program, instruction: Instruction) -> int:
    """The terms of each sum of a product."""
    return program.slots[instruction.inputs[0]].sizes[1]


def columns(program: Program, step: Instruction, axis: int, start: int, stop: int) -> Region | None:
    """Rows of x, columns of w, or terms of their sum."""
    if axis == SUMMED:
        return Region({0: {1: (start, stop)}, 1: {0: (start, stop)}})
    return REGIONS["DotGeneral"](program, step, axis, start, stop)


SUMS = {"DotGeneral": Summing(terms, columns, carried=2, dtype=ir.DataType.FLOAT)}
"""Products may be summed in parts."""
