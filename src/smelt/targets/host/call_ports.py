"""Convert between a caller's arrays and those of a compiled library, which packs 4-bit elements.

NumPy gives an int4 element a byte; the library takes two of them in a byte.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.ir.tensors.packed import packed, unpacked
from smelt.program.instruction import Program
from smelt.runtime.jit.caller import Caller, Port


def ports_of(program: Program, slots: Sequence[int]) -> list[Port]:
    """Return dtype and sizes of the array that the compiled library takes for each of ``slots``.

    A slot of sub-byte elements is a flat array of its packed bytes.
    """
    described = (program.slots[slot] for slot in slots)
    return [
        Port(np.dtype(slot.dtype.numpy()), slot.sizes)
        if slot.dtype.bitwidth >= 8
        else Port(np.dtype(np.uint8), (slot.nbytes,))
        for slot in described
    ]


def has_packed_ports(program: Program) -> bool:
    """True if an input or output has elements of less than a byte."""
    ports = (*program.inputs, *program.outputs)
    return any(program.slots[slot].dtype.bitwidth < 8 for slot in ports)


def packing(program: Program, call: Caller) -> Caller:
    """Return ``call``, preceded by packing inputs of sub-byte elements, followed by unpacking
    such results.
    """
    inputs, outputs = (
        [program.slots[slot] for slot in slots] for slots in (program.inputs, program.outputs)
    )

    def packing(*arrays: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Call with packed inputs; None if the arrays do not fit."""
        if len(arrays) != len(inputs):
            return None
        operands = zip(arrays, inputs, strict=True)
        results = call(*(packed(array, slot.dtype) for array, slot in operands))
        if results is None:
            return None
        pairs = zip(results, outputs, strict=True)
        return tuple(unpacked(array, slot.dtype, slot.sizes) for array, slot in pairs)

    return packing
