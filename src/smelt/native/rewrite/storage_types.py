"""Let kernels compute on storage-only types: load before a kernel, store after it.

A float of 16 bits or less is computed in ``float``, an integer of less than a byte in a byte. Each
result is rounded to its type, as if each operator ran alone. Operators that only move elements of
whole bytes move the stored codes. Constants are converted here, once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.storage import LOAD, STORE
from smelt.native.repeated import without_repeats
from smelt.native.types import C_TYPES
from smelt.program.instruction import (
    DIAGONAL,
    DYNAMIC_PAD,
    DYNAMIC_SLICE,
    DYNAMIC_TILE,
    Instruction,
    Program,
    Slot,
)

MOVES = frozenset(
    {
        *(DYNAMIC_SLICE, DYNAMIC_PAD, DYNAMIC_TILE),
        *("Reshape", "Identity", "Transpose", "Expand", "Tile", "Concat", "Slice", "Gather"),
        *("GatherElements", "GatherND", "Shape", "Size", "BitCast", DIAGONAL),
    }
)
"""Instructions whose kernels only copy elements of at least a byte."""

PACKED_MOVES = frozenset({"Reshape", "Identity", "Shape", "Size", "BitCast"})
"""Instructions whose kernels also copy elements of less than a byte."""


def widen(program: Program) -> None:
    """Insert loads before, and stores after, each kernel of a storage-only type, in place.

    Control flow passes stored codes to its bodies.
    """
    for body in program.bodies:
        widen(body.program)
    if not any(C_TYPES[slot.dtype].computed for slot in program.slots if slot.dtype in C_TYPES):
        return
    _Widener(program).run()


class _Widener:
    """The rewrite of one program. ``loaded`` are the slots of widened constants, by slot of the
    codes.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.done: list[Instruction] = []
        self.loaded: dict[int, int] = {}

    def run(self) -> None:
        """Rewrite all instructions."""
        for instruction in self.program.instructions:
            if instruction.op == "Cast":
                self.cast(instruction)
            else:
                self.compute(instruction)
        self.program.instructions = self.done

    def computed_type(self, slot: int) -> ir.DataType | None:
        """Return the type that a storage-only slot is computed in; None for other slots."""
        if slot < 0 or self.program.slots[slot].dtype not in C_TYPES:
            return None
        return C_TYPES[self.program.slots[slot].dtype].computed

    def compute(self, step: Instruction) -> None:
        """Append one instruction, with loads before and stores after it unless it moves codes."""
        if step.bodies:
            self.done.append(step)
            return
        slots = (*step.inputs, *step.outputs)
        narrow = [slot for slot in slots if self.computed_type(slot) is not None]
        bits = [int(self.program.slots[slot].dtype.bitwidth) for slot in narrow]
        if not narrow or step.op in (MOVES if min(bits) >= 8 else PACKED_MOVES):
            self.done.append(step)
            return
        inputs = tuple(self.load(slot, step) for slot in step.inputs)
        outputs = tuple(self.widened(slot) for slot in step.outputs)
        self.done.append(replace(step, inputs=inputs, outputs=outputs))
        for old, new in zip(step.outputs, outputs, strict=True):
            if old != new:
                self.store(new, old, step, 1)

    def cast(self, step: Instruction) -> None:
        """Append a Cast that rounds once: by way of double if float cannot represent the source
        exactly.
        """
        (source,), (target,) = step.inputs, step.outputs
        value = self.load(source, step)
        wide_type = self.computed_type(target)
        if wide_type is None:
            self.done.append(replace(step, inputs=(value,)))
            return
        source_type = self.program.slots[value].dtype
        is_exact = source_type in _EXACT_IN_FLOAT and source_type != ir.DataType.DOUBLE
        if wide_type == ir.DataType.FLOAT and not is_exact:
            wide_type = ir.DataType.DOUBLE
        if source_type != wide_type:
            between = self.new_slot(target, wide_type)
            attributes = {**step.attributes, "to": int(wide_type)}
            self.done.append(
                replace(step, inputs=(value,), outputs=(between,), attributes=attributes)
            )
            value = between
        self.store(value, target, step, step.attributes.get("saturate", 1))

    def load(self, slot: int, step: Instruction) -> int:
        """Return a slot with the widened elements of ``slot``; ``slot`` if its type is not
        storage-only.
        """
        wide_type = self.computed_type(slot)
        if wide_type is None:
            return slot
        if slot in self.program.constants:
            if slot not in self.loaded:
                self.loaded[slot] = self.new_slot(slot, wide_type)
                codes = self.program.constants[slot]
                array = np.broadcast_to(
                    without_repeats(codes).astype(wide_type.numpy()), codes.shape
                )
                self.program.constants[self.loaded[slot]] = array
            return self.loaded[slot]
        loaded = self.new_slot(slot, wide_type)
        self.done.append(Instruction(LOAD, (slot,), (loaded,), {}, (), step.origin))
        return loaded

    def widened(self, slot: int) -> int:
        """Return a new slot for the widened result; ``slot`` if its type is not storage-only."""
        wide_type = self.computed_type(slot)
        return slot if wide_type is None else self.new_slot(slot, wide_type)

    def store(self, value: int, slot: int, step: Instruction, saturate: object) -> None:
        """Append the instruction that rounds ``value`` to the type of ``slot`` and stores its
        codes.
        """
        attributes = {"saturate": int(bool(saturate))}
        self.done.append(Instruction(STORE, (value,), (slot,), attributes, (), step.origin))

    def new_slot(self, like: int, dtype: ir.DataType) -> int:
        """Return a new slot of type ``dtype``, otherwise like the slot ``like``."""
        slot: Slot = self.program.slots[like]
        return self.program.new_slot(replace(slot, dtype=dtype))


_EXACT_IN_FLOAT = frozenset(
    {
        *(ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.INT8, ir.DataType.UINT8),
        *(ir.DataType.INT16, ir.DataType.UINT16),
    }
)
