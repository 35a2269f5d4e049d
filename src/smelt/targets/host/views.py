"""Programs whose results only show elements of inputs: they run by NumPy's views alone."""

from __future__ import annotations

import numpy as np

from smelt.program.instruction import Instruction, Program
from smelt.runtime.jit.caller import Caller
from smelt.targets.host.kernels import VIEWS, Call, View
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.prepare import dense


def views_of(program: Program) -> Caller | None:
    """What gives the results of a static ``program`` as views that cannot be written.

    It returns None for anything but NumPy's arrays of the right types and shapes, however they lie.

    None if one of them has to be computed, or is a constant, or cannot be shown by strides of an
    input that lies densely.
    """
    arrays = {slot: dense(program, slot) for slot in program.inputs}
    chains: dict[int, tuple[int, tuple[View, ...]]] = {
        slot: (place, ()) for place, slot in enumerate(program.inputs)
    }
    for step in program.instructions:
        view = _view(program, step, arrays)
        source = step.inputs[0] if step.inputs else -1
        if view is None or source not in chains:
            return None
        place, before = chains[source]
        chains[step.outputs[0]] = place, (*before, view)
        arrays[step.outputs[0]] = view(arrays[source])
    if any(slot not in chains for slot in program.outputs):
        return None
    shown = [chains[slot] for slot in program.outputs]
    ports = [(arrays[slot].dtype, arrays[slot].shape) for slot in program.inputs]

    def show(*inputs: Array) -> tuple[Array, ...] | None:
        if len(inputs) != len(ports):
            return None
        for given, (dtype, shape) in zip(inputs, ports, strict=True):
            if type(given) is not np.ndarray or given.dtype != dtype or given.shape != shape:
                return None
        results = []
        for place, chain in shown:
            result = inputs[place]
            for view in chain:
                result = view(result)
            result = result.view()
            result.flags.writeable = False
            results.append(result)
        return tuple(results)

    return show


def _view(program: Program, step: Instruction, arrays: dict[int, Array]) -> View | None:
    """How ``step`` shows its only operand; None if it does not."""
    make = VIEWS.get(step.op)
    if make is None or len(step.inputs) != 1 or step.inputs[0] not in arrays:
        return None
    inputs, outputs = (arrays[step.inputs[0]],), (dense(program, step.outputs[0]),)
    return make(Call(step.op, step.attributes, inputs, outputs, step.origin))
