"""Run programs that only select or reorder elements of inputs: their results are NumPy views."""

from __future__ import annotations

import numpy as np

from smelt.program.instruction import Instruction, Program
from smelt.runtime.jit.caller import Caller
from smelt.targets.host.kernels import VIEWS, Call, View
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.prepare import dense


def views_of(program: Program) -> Caller | None:
    """Return a caller of the static ``program`` whose results are read-only views of its inputs.

    None if a result is computed, is a constant, or is no strided view of a dense input. The caller
    itself returns None for arguments that are not NumPy arrays of the right types and shapes; their
    strides may be any.
    """
    chains = _chains(program)
    if chains is None or any(slot not in chains for slot in program.outputs):
        return None
    results_as_views = [chains[slot] for slot in program.outputs]
    inputs_dense = [dense(program, slot) for slot in program.inputs]
    ports = [(array.dtype, array.shape) for array in inputs_dense]

    def show(*inputs: Array) -> tuple[Array, ...] | None:
        """Return the views of ``inputs``; None if they do not fit."""
        if len(inputs) != len(ports):
            return None
        for array, (dtype, shape) in zip(inputs, ports, strict=True):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
        results = []
        for position, chain in results_as_views:
            result = inputs[position]
            for view in chain:
                result = view(result)
            result = result.view()
            result.flags.writeable = False
            results.append(result)
        return tuple(results)

    return show


def _chains(program: Program) -> dict[int, tuple[int, tuple[View, ...]]] | None:
    """Return, for each slot, the position of an input and the views that lead from it to the slot.

    None if an instruction makes no view of an input.
    """
    arrays = {slot: dense(program, slot) for slot in program.inputs}
    chains: dict[int, tuple[int, tuple[View, ...]]] = {
        slot: (position, ()) for position, slot in enumerate(program.inputs)
    }
    for step in program.instructions:
        view = _view(program, step, arrays)
        source = step.inputs[0] if step.inputs else -1
        if view is None or source not in chains:
            return None
        position, before = chains[source]
        chains[step.outputs[0]] = position, (*before, view)
        arrays[step.outputs[0]] = view(arrays[source])
    return chains


def _view(program: Program, step: Instruction, arrays: dict[int, Array]) -> View | None:
    """Return the view that ``step`` makes of its only operand; None if it makes none."""
    make = VIEWS.get(step.op)
    if make is None or len(step.inputs) != 1 or step.inputs[0] not in arrays:
        return None
    inputs, outputs = (arrays[step.inputs[0]],), (dense(program, step.outputs[0]),)
    return make(Call(step.op, step.attributes, inputs, outputs, step.origin))
