"""The work of each instruction: multiply-adds, and bytes read and written."""

from __future__ import annotations

import math
from typing import NotRequired, TypedDict

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction, Program


class KernelWork(TypedDict):
    """The work of one instruction; ``origin`` names its source nodes.

    The bytes of a tensor count once.

    Targets that know a CPU's costs add an estimate of machine ``instructions``, None if unknown.
    """

    step: int
    op: str
    origin: str
    macs: int
    bytes_read: int
    bytes_written: int
    instructions: NotRequired[int | None]


def kernel_report(program: Program) -> list[KernelWork]:
    """Return the work of each instruction of a ``program`` of constant sizes, in order.

    An instruction with bodies counts no multiply-adds, because its iterations are unknown.
    """
    return [
        {
            "step": step,
            "op": each.op,
            "origin": each.origin,
            "macs": macs(program, each),
            "bytes_read": sum(program.slots[slot].nbytes for slot in set(each.inputs) - {-1}),
            "bytes_written": sum(program.slots[slot].nbytes for slot in each.outputs if slot >= 0),
        }
        for step, each in enumerate(program.instructions)
    ]


def macs(program: Program, instruction: Instruction) -> int:
    """Return the multiply-adds of an instruction; 0 unless it is a convolution or matrix
    product."""
    op = instruction.op.rpartition("::")[2]
    shapes = [_shape(program, slot) for slot in instruction.inputs]
    if not instruction.outputs or len(shapes) < 2:
        return 0
    result = math.prod(_shape(program, instruction.outputs[0]))
    dims = instruction.attributes.get("dims")
    if isinstance(dims, DotDims):
        return result * math.prod(shapes[0][axis] for axis in dims.lhs_contracting)
    if op in ("Conv", "ConvRelu", "ConvByPanels", "ConvInteger"):
        return result * math.prod(shapes[1][1:])
    if op == "QLinearConv":
        return result * math.prod(shapes[3][1:])
    if op in ("QLinearMatMul", "MatMulInteger", "MatMulNBits"):
        return result * shapes[0][-1]
    if op == "ConvTranspose":
        return math.prod(shapes[0]) * math.prod(shapes[1][1:])
    return 0


def _shape(program: Program, slot: int) -> tuple[int, ...]:
    """Return the shape of a slot as numbers; ``()`` for an absent operand."""
    return tuple(int(str(dim)) for dim in program.slots[slot].shape) if slot >= 0 else ()
