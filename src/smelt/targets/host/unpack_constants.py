"""Constants of less than a byte an element, a byte an element: NumPy addresses nothing smaller.

They are weights that are cast before anything is computed with them, after moves at most. Where
something else reads them, or a run computes such numbers, the program stays as it is, and the gate
refuses their types.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from smelt.native.storage_types import MOVES
from smelt.program.instruction import Program

BYTES = {
    dtype: ir.DataType.INT8 if dtype.is_signed() else ir.DataType.UINT8
    for dtype in ir.DataType
    if dtype.is_integer() and dtype.bitwidth < 8
}


def unpack_constants(program: Program) -> None:
    """Give small constants, and what moves make of them, the types of ``BYTES``, in place."""
    small = {slot for slot in program.constants if program.slots[slot].dtype in BYTES}
    for step in program.instructions:
        if not small.intersection(step.inputs):
            continue
        if step.op in MOVES and step.op != "BitCast":  # a byte has other bits than half of one
            small |= {slot for slot in step.outputs if program.slots[slot].dtype in BYTES}
        elif step.op != "Cast":
            return
    if small.intersection(program.outputs):
        return
    for slot in small:
        dtype = BYTES[program.slots[slot].dtype]
        program.slots[slot] = replace(program.slots[slot], dtype=dtype)
        if slot in program.constants:
            program.constants[slot] = np.asarray(program.constants[slot]).astype(dtype.numpy())
