"""Run a Program instruction by instruction, as it stands: no pass, no plan, no shared memory.

Each result is an array of its own, made by the kernel of its instruction and let go after its last
use. So this is what compiled programs are held against, and how a Program is looked at halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from smelt.errors import InvalidModel, UsageError
from smelt.program.instruction import Instruction, Program
from smelt.program.passes import last_use
from smelt.program.specialize import specialize
from smelt.targets.host.kernels import Call, kernel_of
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.taken import taken

Watch = Callable[[Instruction, Sequence[Array]], None]


def run(program: Program, *inputs: Array, watch: Watch | None = None) -> tuple[Array, ...]:
    """The outputs of ``program`` for one array an input, of the dtype and shape of its slot.

    Symbolic dims have the sizes of the arrays. ``program`` is not changed; it may be what lowering
    makes or what any pass made of it. ``watch(instruction, results)`` sees each instruction as it
    was run. Inputs are never written, and no output shares memory with them.

    Raises UsageError E670 or E671 for arrays that do not fit, Unsupported E202 for an instruction
    that no kernel of NumPy computes, InvalidModel E321 for an index out of range.
    """
    if not isinstance(program, Program):
        what = f"{type(program).__name__} is no Program"
        raise UsageError("E671", what, fix="smelt.program.lower.lower(model) makes one of a model")
    if len(inputs) != len(program.inputs):
        raise UsageError("E671", f"{len(inputs)} arrays for {len(program.inputs)} inputs")
    described = (program.slots[slot] for slot in program.inputs)
    arrays = [taken(slot, array) for slot, array in zip(described, inputs, strict=True)]
    static = specialize(program.copy(), tuple(array.shape for array in arrays))
    try:
        with np.errstate(all="ignore"):
            results = _run(static, watch, *arrays)
    except IndexError as error:
        raise InvalidModel(
            "E321", "an index is out of range as the program runs", why=str(error)
        ) from error
    return tuple(np.array(result, order="C") for result in results)


def _run(program: Program, watch: Watch | None, *inputs: Array) -> tuple[Array, ...]:
    last_use.run(program)
    held = {**program.constants, **dict(zip(program.inputs, inputs, strict=True))}
    for instruction in program.instructions:
        results = _computed(program, instruction, held, watch)
        if watch is not None:
            watch(instruction, results)
        pairs = zip(instruction.outputs, results, strict=True)
        held.update((slot, result) for slot, result in pairs if slot >= 0)
        for slot, ends in zip(instruction.inputs, instruction.last_use, strict=True):
            if ends:
                held.pop(slot, None)
    return tuple(held[slot] for slot in program.outputs)


def _computed(
    program: Program, instruction: Instruction, held: dict[int, Array], watch: Watch | None
) -> tuple[Array, ...]:
    given = tuple(held[slot] if slot >= 0 else None for slot in instruction.inputs)
    slots = [program.slots[slot] for slot in instruction.outputs]
    results = tuple(np.empty(slot.sizes, slot.dtype.numpy()) for slot in slots)
    bodies = tuple(partial(_run, body.program, watch) for body in instruction.bodies)
    attributes, origin = instruction.attributes, instruction.origin
    call = Call(instruction.op, attributes, given, results, origin, bodies)
    kernel = kernel_of(instruction.op)
    if kernel is None or instruction.finish or instruction.parts:
        raise call.refuse("no kernel is registered, or the instruction is of another target")
    step = kernel(call)
    step.run(*given, *results, *(np.empty(shape, dtype) for shape, dtype in step.scratch))
    return results
