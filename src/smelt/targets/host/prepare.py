"""Prepare every instruction of a static Program: decide which results are views, choose kernels.

Preparation runs on arrays that have shape, dtype and strides, but no memory. They show which
results of Transpose, Reshape, Slice and Expand are strided views, which cost nothing at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from smelt.errors import ErrorList, Unsupported
from smelt.native.kernels import kernel_of as native_kernel_of
from smelt.operators import find
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN as MICROSOFT
from smelt.program.instruction import Instruction, Program
from smelt.program.storage import Needs
from smelt.targets.host.kernels import VIEWS, Call, Step, View, is_reference, kernel_of
from smelt.targets.host.kernels.kernel import Array, imaginary

ALIGNMENT = 64


@dataclass(frozen=True)
class Prepared:
    """One prepared instruction: a ``view`` of its first input, or a ``step``."""

    instruction: Instruction
    view: View | None = None
    step: Step | None = None

    def needs(self) -> Needs:
        """Return the memory that the instruction needs, for the memory planner.

        A view shares the memory of its input. A step may write in place, and needs a workspace.
        """
        if self.view is not None:
            return Needs(view_of=0)
        assert self.step is not None
        return Needs(in_place=self.step.in_place, workspace=scratch_bytes(self.step))


def refusal(instruction: Instruction) -> str | None:
    """Return the reason why no kernel runs ``instruction``; None if a kernel exists.

    The kernel may still refuse some sizes when it is prepared.
    """
    if kernel_of(instruction.op) is None:
        return "no kernel is registered, and it is no declared operator with a reference"
    return None


def is_foreign(op: str) -> bool:
    """True if ``op`` is an ONNX Runtime operator without a kernel in NumPy or C.

    Such an operator has a slow reference and an ONNX body. Its body is better lowered.
    """
    domain, _, name = op.rpartition("::")
    operator = find(domain, name) if domain == MICROSOFT else None
    if operator is None or operator.body is None:
        return False
    return is_reference(op) and native_kernel_of(op) is None


def prepare(program: Program) -> tuple[Prepared, ...]:
    """Prepare all instructions of ``program``, whose slots must be static (else ValueError).

    Raises an ErrorList of Unsupported for calls that their kernels refuse.
    """
    arrays: dict[int, Array] = {}
    for slot in (*program.inputs, *program.constants):
        arrays[slot] = dense(program, slot)
    for slot, constant in program.constants.items():
        arrays[slot] = constant
    returned = set(program.outputs)
    prepared: list[Prepared] = []
    errors: list[Unsupported] = []
    for instruction in program.instructions:
        for slot in instruction.outputs:
            arrays[slot] = dense(program, slot)
        try:
            prepared.append(_prepare(instruction, arrays, returned))
        except Unsupported as error:
            errors.append(error)
    if errors:
        raise ErrorList(errors)
    return tuple(prepared)


def _prepare(instruction: Instruction, arrays: dict[int, Array], returned: set[int]) -> Prepared:
    """Prepare one instruction as a view if possible, else as a step of its kernel."""
    call = Call(
        instruction.op,
        instruction.attributes,
        tuple(arrays[slot] if slot >= 0 else None for slot in instruction.inputs),
        tuple(arrays[slot] for slot in instruction.outputs),
        instruction.origin,
        tuple(body.plan for body in instruction.bodies),
    )
    make_view = VIEWS.get(instruction.op)
    output = instruction.outputs[0]
    # Outputs of the program must be dense and own their memory.
    if make_view is not None and output not in returned:
        view = make_view(call)
        if view is not None:
            arrays[output] = view(call.input(0))
            return Prepared(instruction, view=view)
    kernel = kernel_of(instruction.op)
    if kernel is None:
        raise call.refuse("no kernel is registered")
    step = kernel(call)
    usable = tuple(position for position in step.in_place if _fits(call, position))
    return Prepared(instruction, step=Step(step.run, usable, step.scratch))


def _fits(call: Call, position: int) -> bool:
    """True if a kernel may write its first output into the memory of input ``position``.

    Both need the same shape and dtype. The input must be dense and writable; the view of a
    broadcast, with strides of 0, is neither.
    """
    source, target = call.inputs[position], call.outputs[0]
    if source is None or not (source.flags.c_contiguous and source.flags.writeable):
        return False
    return source.shape == target.shape and source.dtype == target.dtype


def dense(program: Program, slot: int) -> Array:
    """Return a row-major array of the type of ``slot`` without memory."""
    described = program.slots[slot]
    return imaginary(described.sizes, np.dtype(described.dtype.numpy()))


def scratch_offsets(step: Step) -> tuple[int, ...]:
    """Return the offset of each scratch array of ``step`` in its workspace, then the total size."""
    offsets = [0]
    for shape, dtype in step.scratch:
        offsets.append(offsets[-1] + -(-prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT)
    return tuple(offsets)


def scratch_bytes(step: Step) -> int:
    """Return the workspace of ``step`` in bytes, with each array aligned."""
    return scratch_offsets(step)[-1]


def arrays_in(workspace: Array, step: Step) -> Sequence[Array]:
    """Return the scratch arrays of ``step`` as views of the bytes of ``workspace``."""
    offsets = scratch_offsets(step)
    return [
        workspace[start : start + prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
        for start, (shape, dtype) in zip(offsets, step.scratch, strict=False)
    ]
