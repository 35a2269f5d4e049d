"""Constant scales and zero points in QuantizeLinear and DequantizeLinear instructions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from smelt.program.instruction import AttributeValue, Instruction, Program, Slot

BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})


@dataclass(frozen=True)
class Step:
    """One scale and zero point, and the type of the bytes."""

    scale: np.float32
    zero: int
    dtype: ir.DataType

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest byte."""
        return (-128, 127) if self.dtype == ir.DataType.INT8 else (0, 255)

    def quantized(self, real: np.ndarray) -> np.ndarray:
        """Return ``real`` quantized as by QuantizeLinear; NaN becomes the lowest byte."""
        low, high = self.range
        with np.errstate(over="ignore", invalid="ignore"):
            steps = real.astype(np.float32) / self.scale
        held = np.clip(np.where(np.isnan(steps), -1024, steps), -1024, 1024)
        whole = np.clip(np.rint(held) + self.zero, low, high)
        return np.asarray(whole, self.dtype.numpy())

    def every_byte(self) -> np.ndarray:
        """Return all bytes in the order of their memory values, as int32."""
        return np.arange(256, dtype=np.uint8).view(self.dtype.numpy()).astype(np.int32)

    def every_number(self) -> np.ndarray:
        """Return the number that each byte stands for, in the order of memory values."""
        return (self.every_byte() - self.zero).astype(np.float32) * self.scale


@dataclass(frozen=True)
class Quantized:
    """Bytes in ``slot`` that are dequantized by one ``step``."""

    slot: int
    step: Step


@dataclass(frozen=True)
class Weights:
    """Constant bytes with scales and zero points: one, or one per index of ``axis``."""

    bytes: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    axis: int


@dataclass
class Values:
    """The instructions of ``program`` by the slots they write, and the number of reads of each
    slot."""

    program: Program
    made_by: dict[int, Instruction] = field(default_factory=dict)
    reads: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.reads.update(self.program.outputs)
        for instruction in self.program.instructions:
            self.made_by.update(dict.fromkeys(instruction.outputs, instruction))
            self.reads.update(instruction.inputs)

    def inner(self, slot: int) -> Instruction | None:
        """Return the instruction that writes ``slot``, if the slot is read once."""
        return self.made_by.get(slot) if self.reads[slot] == 1 else None

    def constant(self, instruction: Instruction, position: int) -> np.ndarray | None:
        """Return a constant input; None if it is absent or computed."""
        inputs = instruction.inputs
        return self.program.constants.get(inputs[position]) if position < len(inputs) else None

    def step_of(self, instruction: Instruction, dtype: ir.DataType) -> Step | None:
        """Return the constant scalar scale and zero point of a QuantizeLinear or DequantizeLinear,
        or None."""
        scale = self.constant(instruction, 1)
        if scale is None or scale.size != 1 or scale.dtype != np.float32 or dtype not in BYTES:
            return None
        zero = self.constant(instruction, 2)
        given = len(instruction.inputs) > 2 and instruction.inputs[2] >= 0
        if not (np.isfinite(scale).all() and (scale > 0).all()) or (given and zero is None):
            return None
        number = 0 if zero is None else int(zero.reshape(-1)[0])
        return Step(np.float32(scale.reshape(-1)[0]), number, dtype)

    def quantized(self, slot: int) -> Quantized | None:
        """Return the bytes from which ``slot`` is dequantized by one scale, or None."""
        made = self.made_by.get(slot)
        if made is None or made.op != "DequantizeLinear":
            return None
        source = made.inputs[0]
        step = self.step_of(made, self.program.slots[source].dtype)
        return None if step is None else Quantized(source, step)

    def weights(self, slot: int) -> Weights | None:
        """Return the constant bytes from which ``slot`` is dequantized by constant scales, or
        None."""
        made = self.made_by.get(slot)
        if made is None or made.op != "DequantizeLinear":
            return None
        array, scales = self.constant(made, 0), self.constant(made, 1)
        given = len(made.inputs) > 2 and made.inputs[2] >= 0
        zeros = self.constant(made, 2) if given else np.zeros((), np.int8)
        if array is None or scales is None or zeros is None or scales.ndim > 1:
            return None
        if self.program.slots[made.inputs[0]].dtype not in BYTES or scales.dtype != np.float32:
            return None
        zeros = zeros if given else np.zeros(scales.shape, array.dtype)
        if scales.size == 1:
            return Weights(array, scales.reshape(()), zeros.reshape(()), -1)
        return Weights(array, scales, zeros, int(str(made.attributes.get("axis", 1))))

    def number(self, slot: int) -> np.float32 | None:
        """Return the single float that ``slot`` holds, constant or dequantized from a constant, or
        None."""
        array, made = self.program.constants.get(slot), self.made_by.get(slot)
        if array is not None:
            plain = array.size == 1 and array.dtype == np.float32
            return np.float32(array.reshape(-1)[0]) if plain else None
        found, held = self.quantized(slot), None if made is None else self.constant(made, 0)
        if found is None or held is None or held.size != 1:
            return None
        return np.float32(int(held.reshape(-1)[0]) - found.step.zero) * found.step.scale

    def new_constant(self, array: np.ndarray, name: str) -> int:
        """Return a new slot that holds ``array``."""
        dtype = ir.DataType.from_numpy(array.dtype)
        slot = self.program.new_slot(Slot(dtype, array.shape, name))
        held = np.ascontiguousarray(array).reshape(array.shape)
        held.flags.writeable = False
        self.program.constants[slot] = held
        return slot

    def new_bytes(self, like: int, dtype: ir.DataType) -> int:
        """Return a new slot with the shape of slot ``like``."""
        described = self.program.slots[like]
        return self.program.new_slot(Slot(dtype, described.shape, described.name))


def instruction_of(
    origin: str, op: str, inputs: tuple[int, ...], output: int, **attributes: AttributeValue
) -> Instruction:
    """Return an instruction with one result."""
    return Instruction(op, inputs, (output,), attributes, (), origin)
