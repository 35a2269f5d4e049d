"""Bind a prepared Program to memory and write it as one straight-line Python function.

Names in the function are slot and step numbers only, so no name of a model becomes code. Arrays in
the arena and constants are made once; each call makes only views of inputs, and outputs::

    def run(v0, v1):
        v2 = empty((2, 4), type2)
        k0(v0, v1, v2)
        v3 = v2
        k1(v2, v3)
        return (v3,)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from smelt.program.instruction import Program
from smelt.program.memory import ALIGNMENT, MemoryPlan
from smelt.program.storage import Owner, Storage
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.prepare import Prepared, arrays_in

Bound: TypeAlias = Callable[..., tuple[Array, ...]]


class Binder:
    """Builds the Python function of one static Program."""

    def __init__(self, plan: MemoryPlan, prepared: Sequence[Prepared]) -> None:
        """Allocate the arena of ``plan``; ``prepared`` are the steps of its program."""
        self.program: Program = plan.program
        self.plan = plan
        self.prepared = prepared
        self.names: dict[str, object] = {"empty": np.empty, "copy": _contiguous_copy}
        self.lines: list[str] = []
        # slots whose arrays are the same in every run: constants, and slots in the arena
        self.fixed: dict[int, Array] = dict(self.program.constants)
        self.arena = _aligned_bytes(plan.arena_bytes)
        pairs = zip(plan.assignment.arena, plan.offsets, strict=True)
        self.offsets = {id(storage): offset for storage, offset in pairs}

    def bind(self) -> Bound:
        """Return the function, which takes the inputs and returns the outputs."""
        for step, prepared in enumerate(self.prepared):
            if prepared.view is not None:
                self._view(step, prepared)
            else:
                self._call(step, prepared)
        copied = {index for index, _ in self.plan.assignment.copies}
        returned = [
            f"copy(v{slot})" if index in copied else f"v{slot}"
            for index, slot in enumerate(self.program.outputs)
        ]
        for slot, array in self.fixed.items():
            self.names[f"v{slot}"] = array
        arguments = ", ".join(f"v{slot}" for slot in self.program.inputs)
        body = [*self.lines, f"return ({', '.join(returned)}{',' if returned else ''})"]
        source = "\n    ".join([f"def run({arguments}):", *body]) + "\n"
        exec(compile(source, "<smelt host program>", "exec"), self.names)
        function = self.names["run"]
        assert callable(function)
        return function

    def _view(self, step: int, prepared: Prepared) -> None:
        """Add the line ``v3 = view2(v1)`` for step 2; a view of a fixed array is made here."""
        (source, *_), (target, *_) = prepared.instruction.inputs, prepared.instruction.outputs
        assert prepared.view is not None
        if source in self.fixed:
            self.fixed[target] = prepared.view(self.fixed[source])
            return
        self.names[f"view{step}"] = prepared.view
        self.lines.append(f"v{target} = view{step}(v{source})")

    def _call(self, step: int, prepared: Prepared) -> None:
        """Add a line that calls the kernel of a step on its operands, results and scratch
        arrays.

        For step 3: ``k3(v0, v1, v2, s3_0)``, with kernel k3, slots v0 to v2 and one scratch array.
        """
        instruction, step_of_kernel = prepared.instruction, prepared.step
        assert step_of_kernel is not None
        for position, slot in enumerate(instruction.outputs):
            self._place(slot, instruction.inputs if position == 0 else ())
        operands = [f"v{slot}" if slot >= 0 else "None" for slot in instruction.inputs]
        operands += [f"v{slot}" for slot in instruction.outputs]
        workspace = self.plan.assignment.scratch[step]
        memory = np.empty(0, np.uint8) if workspace is None else self._bytes(workspace)
        for i, array in enumerate(arrays_in(memory, step_of_kernel)):  # empty ones need no memory
            self.names[f"s{step}_{i}"] = array
            operands.append(f"s{step}_{i}")
        self.names[f"k{step}"] = step_of_kernel.run
        self.lines.append(f"k{step}({', '.join(operands)})")

    def _place(self, slot: int, inputs: Sequence[int]) -> None:
        """Give ``slot`` its array before the kernel that writes it is called.

        A slot in the arena gets a view of its bytes there, made once. Otherwise a line of the
        function makes the array: the input of ``inputs`` whose memory the slot reuses, or a new
        array.
        """
        storage = self.plan.assignment.of_slot[slot]
        assert storage is not None
        slot_info = self.program.slots[slot]
        shape, dtype = tuple(slot_info.shape), np.dtype(slot_info.dtype.numpy())
        if storage.owner is Owner.ARENA:
            memory = self._bytes(storage)[: slot_info.nbytes]
            self.fixed[slot] = memory.view(dtype).reshape([int(str(dim)) for dim in shape])
            return
        of_slot = self.plan.assignment.of_slot
        overwritten = [other for other in inputs if other >= 0 and of_slot[other] is storage]
        if overwritten:
            self.lines.append(f"v{slot} = v{overwritten[0]}")
            return
        self.names[f"type{slot}"] = dtype
        self.lines.append(f"v{slot} = empty({shape!r}, type{slot})")

    def _bytes(self, storage: Storage) -> Array:
        """Return the bytes of ``storage`` in the arena."""
        offset = self.offsets[id(storage)]
        return self.arena[offset : offset + storage.size]


def _aligned_bytes(size: int) -> Array:
    """Return uninitialized bytes that start on a cache line."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def _contiguous_copy(array: Array) -> Array:
    """Return a contiguous copy of ``array``."""
    return np.array(array, order="C", copy=True)
