"""Run a Program instruction by instruction as written: no pass, no plan, no shared memory.

Each result is a new array from the kernel of its instruction, freed after its last use. Tests
compare compiled programs with it, and it shows the values of a Program after any pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from smelt.errors import InvalidModel, UsageError
from smelt.program.instruction import Instruction, Program
from smelt.program.passes import last_use
from smelt.program.specialize import specialize
from smelt.targets.host.input_array import input_array
from smelt.targets.host.kernels import Call, kernel_of
from smelt.targets.host.kernels.kernel import Array

Watch = Callable[[Instruction, Sequence[Array]], None]


def run(program: Program, *inputs: Array, watch: Watch | None = None) -> tuple[Array, ...]:
    """Return the outputs of ``program`` for one array per input, of its slot's dtype and shape.

    Symbolic dims have the sizes of the arrays. ``program``, from lowering or any pass, is not
    changed. ``watch(instruction, results)`` is called after each instruction. Inputs are never
    written, and outputs share no memory with them. Raises UsageError E670 or E671 for arrays that
    do not fit, Unsupported E202 for an instruction without a NumPy kernel, InvalidModel E321 for an
    index out of range.
    """
    if not isinstance(program, Program):
        what = f"{type(program).__name__} is not a Program"
        raise UsageError(
            "E671",
            what,
            fix="pass smelt.program.lower.lower(model)",
            why="eager execution runs a Program",
        )
    if len(inputs) != len(program.inputs):
        raise UsageError(
            "E671",
            f"{len(inputs)} arrays for {len(program.inputs)} inputs",
            why="each input takes one array",
            fix="pass one array per input of the Program",
        )
    described = (program.slots[slot] for slot in program.inputs)
    arrays = [input_array(slot, array) for slot, array in zip(described, inputs, strict=True)]
    static = specialize(program.copy(), tuple(array.shape for array in arrays))
    try:
        with np.errstate(all="ignore"):
            results = _run(static, watch, *arrays)
    except IndexError as error:
        raise InvalidModel(
            "E321",
            "an index is out of range as the program runs",
            why=str(error),
            fix="check the inputs that hold indices: each must be within its axis",
        ) from error
    return tuple(np.array(result, order="C") for result in results)


def _run(program: Program, watch: Watch | None, *inputs: Array) -> tuple[Array, ...]:
    """Return the outputs of the static ``program``; each value is freed after its last use."""
    last_use.run(program)
    values = {**program.constants, **dict(zip(program.inputs, inputs, strict=True))}
    for instruction in program.instructions:
        results = _computed_results(program, instruction, values, watch)
        if watch is not None:
            watch(instruction, results)
        pairs = zip(instruction.outputs, results, strict=True)
        values.update((slot, result) for slot, result in pairs if slot >= 0)
        for slot, ends in zip(instruction.inputs, instruction.last_use, strict=True):
            if ends:
                values.pop(slot, None)
    return tuple(values[slot] for slot in program.outputs)


def _computed_results(
    program: Program, instruction: Instruction, values: dict[int, Array], watch: Watch | None
) -> tuple[Array, ...]:
    """Return the results of one instruction in new arrays."""
    operands = tuple(values[slot] if slot >= 0 else None for slot in instruction.inputs)
    slots = [program.slots[slot] for slot in instruction.outputs]
    results = tuple(np.empty(slot.sizes, slot.dtype.numpy()) for slot in slots)
    bodies = tuple(partial(_run, body.program, watch) for body in instruction.bodies)
    attributes, origin = instruction.attributes, instruction.origin
    call = Call(instruction.op, attributes, operands, results, origin, bodies)
    kernel = kernel_of(instruction.op)
    if kernel is None or instruction.epilogue or instruction.parts:
        raise call.refuse("no kernel is registered, or the instruction is of another target")
    step = kernel(call)
    step.run(*operands, *results, *(np.empty(shape, dtype) for shape, dtype in step.scratch))
    return results
