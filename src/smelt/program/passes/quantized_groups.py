"""Replaces DequantizeLinear, an operator and QuantizeLinear by one integer operator.

    before   DequantizeLinear ─> Conv ─> Relu ─> QuantizeLinear
    after    QLinearConv

The result is that of the QLinear operators of ONNX and ONNX Runtime, which round once. A float
close to a rounding boundary may round to the other side: results are within one quantization step
of the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from smelt.program.instruction import Dim, Instruction, Program
from smelt.program.passes import quantized_products as products
from smelt.program.passes.quantized_links import Link, link
from smelt.program.quantized import ADD, LOOKUP, MEAN, MUL, SOFTMAX
from smelt.program.quantized_values import Quantized, Step, Values, instruction_of

Computes = Callable[[Program, Instruction], bool]

BOUNDS = frozenset({"Relu", "Clip"})
"""Operators that clamp; on quantized numbers they clamp bytes."""

MOVES = frozenset(
    {
        *("Reshape", "Transpose", "Slice", "Expand", "Gather", "Tile", "Concat", "MaxPool"),
        *("DepthToSpace", "SpaceToDepth", "Identity"),
    }
)
"""Instructions whose results are elements of their first input (of all inputs, for Concat)."""

WIDEST = 80.0
"""Largest difference from the maximum whose exponential is still a normal float."""


def run(program: Program, computes: Computes, fused: Mapping[str, str]) -> int:
    """Rewrite each group that ``computes`` supports as one instruction; return the number of
    groups.

    ``computes`` tells which integer instructions the target has. ``fused`` maps operators that end
    in Relu to the operators without it.
    """
    groups = _Groups(program, computes, fused)
    for instruction in program.instructions:
        if instruction.op == "QuantizeLinear":
            rewritten = groups.rewritten_group(instruction)
            groups.rewritten_count += rewritten is not None
        else:
            rewritten = groups.moved_bytes(instruction)
        groups.instructions += rewritten if rewritten is not None else [instruction]
    program.instructions = groups.instructions
    return groups.rewritten_count


@dataclass(frozen=True)
class Group:
    """The QuantizeLinear ``end``, the operator ``inner`` before it, and operators that clamp
    between.

    ``step`` is the quantization of the result; ``bounds`` are its lowest and highest byte.
    """

    end: Instruction
    inner: Instruction
    step: Step
    bounds: tuple[int, int]


class _Groups:
    """The rewrite of one program."""

    def __init__(self, program: Program, computes: Computes, fused: Mapping[str, str]) -> None:
        self.program = program
        self.values = Values(program)
        self.computes = computes
        self.fused = fused
        self.instructions: list[Instruction] = []
        self.rewritten_count = 0

    def rewritten_group(self, end: Instruction) -> list[Instruction] | None:
        """Return the replacement of the group that ends in ``end``, or None.

        If a Clip bounds the result further, bytes are computed into a new slot and clipped.
        """
        step = self.values.step_of(end, self.program.slots[end.outputs[0]].dtype)
        if step is None or self.program.slots[end.inputs[0]].dtype.name != "FLOAT":
            return None
        looked_up = self._lookup(end, step)
        if looked_up is not None:
            return looked_up
        group = self._group(end, step)
        if group is None:
            return None
        target = end.outputs[0]
        is_clamped = group.bounds != step.range
        output = self.values.new_bytes(target, step.dtype) if is_clamped else target
        instructions = self._inner(group, output)
        if instructions is None or not all(self.computes(self.program, x) for x in instructions):
            return None
        if is_clamped:
            low, high = group.bounds
            instructions.append(
                instruction_of(end.origin, "Clip", (output,), target, min=low, max=high)
            )
        return instructions

    def moved_bytes(self, move: Instruction) -> list[Instruction] | None:
        """Return ``move`` of bytes and, after it, the DequantizeLinear that was before it.

        ``move`` is an instruction that only moves elements, such as a Reshape. None if it does not
        read dequantized bytes.
        """
        if move.op not in MOVES or move.op == "Concat" or len(move.outputs) != 1:
            return None
        x = self.values.quantized(move.inputs[0])
        if x is None:
            return None
        dequantize = self.values.writer_of[move.inputs[0]]
        result = self.values.new_bytes(move.outputs[0], x.step.dtype)
        byte_move = replace(move, inputs=(x.slot, *move.inputs[1:]), outputs=(result,))
        if not self.computes(self.program, byte_move):
            return None
        new_dequantize = replace(
            dequantize, inputs=(result, *dequantize.inputs[1:]), outputs=move.outputs
        )
        self.values.writer_of[move.outputs[0]] = new_dequantize
        return [byte_move, new_dequantize]

    def _group(self, end: Instruction, step: Step) -> Group | None:
        """Return the group of ``end``; None if a value inside has another reader.

        The inner operator is the nearest one before ``end`` that does not clamp.
        """
        low, high = step.range
        inner = self.values.writer_read_once(end.inputs[0])
        while inner is not None and inner.op in BOUNDS and len(inner.inputs) == 1:
            low, high = _clamped_bytes(inner, step, low, high)
            inner = self.values.writer_read_once(inner.inputs[0])
        if inner is None:
            return None
        if inner.op in self.fused:  # the operator includes a Relu
            low = max(low, int(step.quantized(np.zeros(1))[0]))
            inner = replace(inner, op=self.fused[inner.op])
        return Group(end, inner, step, (low, high))

    def _inner(self, group: Group, output: int) -> list[Instruction] | None:
        """Return the integer instructions for ``group`` that write ``output``, or None."""
        inner, values = group.inner, self.values
        if inner.op == "Conv":
            return products.convolution(values, inner, group.step, output)
        if inner.op in ("DotGeneral", "Add"):
            product = products.matrix_product(values, inner, group.step, output)
            if product is not None or inner.op == "DotGeneral":
                return product
        if inner.op in ("Add", "Mul"):
            return self._sum_or_product(inner, group.step, output)
        if inner.op in MOVES and len(inner.outputs) == 1:
            return self._move(inner, group.step, output)
        if inner.op == "Softmax":
            return self._softmax(inner, group.step, output)
        return self._mean(inner, group.step, output)

    def _sum_or_product(
        self, inner: Instruction, step: Step, output: int
    ) -> list[Instruction] | None:
        """Return a QuantizedAdd or QuantizedMul; None if an operand is not quantized."""
        left, right = (self.values.quantized(slot) for slot in inner.inputs)
        if left is None or right is None:
            return None
        steps = {"a": left.step, "b": right.step, "y": step}
        attributes: dict[str, float | int] = {}
        for name, operand_step in steps.items():
            attributes |= {
                f"{name}_scale": float(operand_step.scale),
                f"{name}_zero": operand_step.zero,
            }
        op = ADD if inner.op == "Add" else MUL
        return [instruction_of(inner.origin, op, (left.slot, right.slot), output, **attributes)]

    def _move(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return the movement on bytes, after lookups that rescale its operands; None if one is not
        quantized."""
        data_slots = inner.inputs if inner.op == "Concat" else inner.inputs[:1]
        operands = [self.values.quantized(slot) for slot in data_slots]
        lookups: list[Instruction] = []
        slots: list[int] = []
        for operand in operands:
            if operand is None:
                return None
            slot = operand.slot
            if operand.step != step:
                slot = self.values.new_bytes(operand.slot, step.dtype)
                lookups.append(self._table(operand, step, slot, [], inner.origin))
            slots.append(slot)
        other_inputs = inner.inputs[len(slots) :]
        return [*lookups, replace(inner, inputs=(*slots, *other_inputs), outputs=(output,))]

    def _softmax(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return a QuantizedSoftmax with its table of exponentials.

        None if its operand is not quantized, or its axis is not the last.
        """
        x = self.values.quantized(inner.inputs[0])
        if x is None or inner.attributes["axis"] != len(self.program.slots[output].shape) - 1:
            return None
        scale = float(x.step.scale)
        from_max = 255 * scale > WIDEST
        steps = np.arange(256) if from_max else x.step.all_bytes()
        table = np.exp((steps - steps.max()) * scale).astype(np.float32)
        attributes = {
            "from_max": int(from_max),
            "y_scale": float(step.scale),
            "y_zero": step.zero,
        }
        inputs = (x.slot, self.values.new_constant(table, "exponentials"))
        return [instruction_of(inner.origin, SOFTMAX, inputs, output, **attributes)]

    def _mean(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return a QuantizedMean; None if ``inner`` is no mean over trailing dims.

        Below 2**22 bytes, their sum minus the sum of zero points fits a 32-bit integer.
        """
        x = self.values.quantized(inner.inputs[0]) if inner.inputs else None
        size = _averaged_count(self.program, inner)
        if x is None or not 0 < size < 2**22:
            return None
        attributes = {
            "x_scale": float(x.step.scale),
            "x_zero": x.step.zero,
            "y_scale": float(step.scale),
            "y_zero": step.zero,
        }
        return [instruction_of(inner.origin, MEAN, (x.slot,), output, **attributes)]

    def _lookup(self, end: Instruction, step: Step) -> list[Instruction] | None:
        """Return one table lookup for a chain of operators on one number; None if there is no
        chain."""
        chain: list[Link] = []
        slot = end.inputs[0]
        inner = self.values.writer_read_once(slot)
        while inner is not None and (next_link := link(self.values, inner)) is not None:
            chain.append(next_link)
            slot = next_link.slot
            inner = self.values.writer_read_once(slot)
        x = self.values.quantized(slot)
        if x is None:
            return None
        lookup = self._table(x, step, end.outputs[0], chain[::-1], end.origin)
        return [lookup] if self.computes(self.program, lookup) else None

    def _table(
        self, x: Quantized, step: Step, output: int, chain: list[Link], origin: str
    ) -> Instruction:
        """Return a lookup in a table of the results of ``chain`` for all 256 bytes."""
        numbers = x.step.all_numbers()
        with np.errstate(all="ignore"):
            for link_ in chain:
                numbers = np.asarray(link_.compute(numbers), np.float32)
        table = self.values.new_constant(step.quantized(numbers), "table")
        return instruction_of(origin, LOOKUP, (x.slot, table), output)


def _clamped_bytes(bound: Instruction, step: Step, low: int, high: int) -> tuple[int, int]:
    """Return ``low`` and ``high``, the range of bytes, after a Relu or a Clip."""
    is_relu = bound.op == "Relu"
    minimum = 0.0 if is_relu else bound.attributes["min"]
    maximum = None if is_relu else bound.attributes["max"]
    if minimum is not None:
        first = int(step.quantized(np.asarray([minimum], np.float64))[0])
        low, high = max(low, first), max(high, first)
    if maximum is not None:
        last = int(step.quantized(np.asarray([maximum], np.float64))[0])
        low, high = min(low, last), min(high, last)
    return low, high


def _averaged_count(program: Program, inner: Instruction) -> int:
    """Return how many trailing elements ``inner`` averages; 0 if it is no such mean."""
    shape = program.slots[inner.inputs[0]].shape if inner.inputs else ()
    if inner.op == "ReduceMean":
        axes = inner.ints("axes")
        first = len(shape) - len(axes)
        return _elements(shape[first:]) if axes == tuple(range(first, len(shape))) else 0
    if inner.op != "AveragePool" or any(inner.ints("pads")):
        return 0
    plane = _elements(shape[2:])
    is_whole = plane and shape[2:] == inner.ints("kernel_shape")
    return plane if is_whole and set(inner.ints("dilations")) == {1} else 0


def _elements(shape: tuple[Dim, ...]) -> int:
    """Return the number of elements of this shape; 0 if a size is not a number."""
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return math.prod(sizes) if len(sizes) == len(shape) else 0
