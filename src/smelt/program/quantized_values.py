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
        """Return the lowest and the highest number that the bytes hold."""
        return (-128, 127) if self.dtype == ir.DataType.INT8 else (0, 255)

    def quantized(self, real: np.ndarray) -> np.ndarray:
        """Return ``real`` quantized as by QuantizeLinear; NaN becomes the lowest byte."""
        low, high = self.range
        with np.errstate(over="ignore", invalid="ignore"):
            steps = real.astype(np.float32) / self.scale
        limited = np.clip(np.where(np.isnan(steps), -1024, steps), -1024, 1024)
        rounded = np.clip(np.rint(limited) + self.zero, low, high)
        return np.asarray(rounded, self.dtype.numpy())

    def all_bytes(self) -> np.ndarray:
        """Return all bytes in the order of their memory values, as int32."""
        return np.arange(256, dtype=np.uint8).view(self.dtype.numpy()).astype(np.int32)

    def all_numbers(self) -> np.ndarray:
        """Return the real number of each byte, in the order of their memory values."""
        return (self.all_bytes() - self.zero).astype(np.float32) * self.scale


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
    """The instructions of ``program`` by the slots they write, and how often each slot is read."""

    program: Program
    writer_of: dict[int, Instruction] = field(default_factory=dict)
    reads: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Note the instruction that writes each slot, and the slots that anything reads."""
        self.reads.update(self.program.outputs)
        for instruction in self.program.instructions:
            self.writer_of.update(dict.fromkeys(instruction.outputs, instruction))
            self.reads.update(instruction.inputs)

    def writer_read_once(self, slot: int) -> Instruction | None:
        """Return the instruction that writes ``slot``; None unless the slot is read once."""
        return self.writer_of.get(slot) if self.reads[slot] == 1 else None

    def constant(self, instruction: Instruction, position: int) -> np.ndarray | None:
        """Return a constant input; None if it is absent or computed."""
        inputs = instruction.inputs
        return self.program.constants.get(inputs[position]) if position < len(inputs) else None

    def step_of(self, instruction: Instruction, dtype: ir.DataType) -> Step | None:
        """Return the constant scale and zero point of a QuantizeLinear or DequantizeLinear; None if
        not scalars."""
        scale = self.constant(instruction, 1)
        if scale is None or scale.size != 1 or scale.dtype != np.float32 or dtype not in BYTES:
            return None
        zero = self.constant(instruction, 2)
        has_zero = len(instruction.inputs) > 2 and instruction.inputs[2] >= 0
        if not (np.isfinite(scale).all() and (scale > 0).all()) or (has_zero and zero is None):
            return None
        zero_point = 0 if zero is None else int(zero.reshape(-1)[0])
        return Step(np.float32(scale.reshape(-1)[0]), zero_point, dtype)

    def quantized(self, slot: int) -> Quantized | None:
        """Return the bytes from which ``slot`` is dequantized by one scale; None if it is not."""
        writer = self.writer_of.get(slot)
        if writer is None or writer.op != "DequantizeLinear":
            return None
        source = writer.inputs[0]
        step = self.step_of(writer, self.program.slots[source].dtype)
        return None if step is None else Quantized(source, step)

    def weights(self, slot: int) -> Weights | None:
        """Return the constant bytes and scales from which ``slot`` is dequantized; None if not
        constant."""
        writer = self.writer_of.get(slot)
        if writer is None or writer.op != "DequantizeLinear":
            return None
        array, scales = self.constant(writer, 0), self.constant(writer, 1)
        has_zeros = len(writer.inputs) > 2 and writer.inputs[2] >= 0
        zeros = self.constant(writer, 2) if has_zeros else np.zeros((), np.int8)
        if array is None or scales is None or zeros is None or scales.ndim > 1:
            return None
        if self.program.slots[writer.inputs[0]].dtype not in BYTES or scales.dtype != np.float32:
            return None
        zeros = zeros if has_zeros else np.zeros(scales.shape, array.dtype)
        if scales.size == 1:
            return Weights(array, scales.reshape(()), zeros.reshape(()), -1)
        return Weights(array, scales, zeros, int(str(writer.attributes.get("axis", 1))))

    def number(self, slot: int) -> np.float32 | None:
        """Return the one float in ``slot``, if it is constant or dequantized from a constant, else
        None."""
        array, writer = self.program.constants.get(slot), self.writer_of.get(slot)
        if array is not None:
            is_float = array.size == 1 and array.dtype == np.float32
            return np.float32(array.reshape(-1)[0]) if is_float else None
        quantized, byte = self.quantized(slot), None if writer is None else self.constant(writer, 0)
        if quantized is None or byte is None or byte.size != 1:
            return None
        return np.float32(int(byte.reshape(-1)[0]) - quantized.step.zero) * quantized.step.scale

    def new_constant(self, array: np.ndarray, name: str) -> int:
        """Return a new slot that holds ``array``."""
        dtype = ir.DataType.from_numpy(array.dtype)
        slot = self.program.new_slot(Slot(dtype, array.shape, name))
        constant = np.ascontiguousarray(array).reshape(array.shape)
        constant.flags.writeable = False
        self.program.constants[slot] = constant
        return slot

    def new_bytes(self, like: int, dtype: ir.DataType) -> int:
        """Return a new slot of type ``dtype`` with the shape and name of slot ``like``."""
        pattern = self.program.slots[like]
        return self.program.new_slot(Slot(dtype, pattern.shape, pattern.name))


def instruction_of(
    origin: str, op: str, inputs: tuple[int, ...], output: int, **attributes: AttributeValue
) -> Instruction:
    """Return an instruction with one result."""
    return Instruction(op, inputs, (output,), attributes, (), origin)
