"""Fold instructions that only move constants, or read sizes, into constants.

An expanded constant becomes a view with stride 0 along the dims that repeat it. Kernels that walk
strides read it as a view; for other kernels it is written out among the weights. The arena never
holds it.
"""

from __future__ import annotations

import numpy as np

from smelt.native.kernels.instance import Instance
from smelt.native.repeated import is_repeated, without_repeats
from smelt.operators.complex_dot import matrices_of
from smelt.program.instruction import COMPLEX_MATRICES, Instruction, Program
from smelt.program.run_sizes import Size


def fold_movement(program: Program) -> None:
    """Replace Expand, Transpose, Reshape and matrices of constants, and Shape, by constants.

    An Expand that is an output stays, because writing it takes no weights. An Expand to run-time
    sizes stays too.
    """
    remaining: list[Instruction] = []
    for instruction in program.instructions:
        array = _folded_constant(program, instruction)
        if array is None:
            remaining.append(instruction)
            continue
        array.flags.writeable = False
        program.constants[instruction.outputs[0]] = array
    program.instructions = remaining


def _folded_constant(program: Program, instruction: Instruction) -> np.ndarray | None:
    """Return the constant that the instruction computes; None if its result is not constant."""
    instance = Instance(program, instruction)
    if instruction.op == "Shape":
        sizes = instance.shape(0)[instance.int("start") : instance.int("end")]
        if not all(isinstance(size, int) for size in sizes):
            return None
        return np.asarray(sizes, dtype=np.int64)
    source = program.constants.get(instruction.inputs[0]) if instruction.inputs else None
    if source is None or any(isinstance(size, Size) for size in instance.output_shape()):
        return None
    if instruction.op == "Transpose":
        return _dense_or_repeated(source.transpose(instance.ints("perm")))
    if instruction.op == "Reshape":
        shape, single = instance.output_shape(), without_repeats(source)
        if single.size == 1:
            return np.broadcast_to(single.reshape(()), shape)
        return _dense_or_repeated(source.reshape(shape))
    if instruction.op == COMPLEX_MATRICES:
        perm, axis, signs = instance.ints("perm"), instance.int("axis"), instance.ints("signs")
        return matrices_of(source, perm, axis, signs)
    if instruction.op == "Expand" and instruction.outputs[0] not in program.outputs:
        return np.broadcast_to(source, instance.output_shape())
    return None


def _dense_or_repeated(array: np.ndarray) -> np.ndarray:
    """Return ``array`` as a view if it repeats elements by stride 0, else as a contiguous array."""
    if is_repeated(array):
        return array.view()
    return np.ascontiguousarray(array).reshape(array.shape)
