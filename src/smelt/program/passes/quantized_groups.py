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
    """Rewrite all groups that ``computes`` supports as one instruction; return their number.

    ``fused`` maps operators that end in Relu to the operators without it.
    """
    groups = _Groups(program, computes, fused)
    for instruction in program.instructions:
        if instruction.op == "QuantizeLinear":
            made = groups.of(instruction)
            groups.count += made is not None
        else:
            made = groups.moved(instruction)
        groups.done += made if made is not None else [instruction]
    program.instructions = groups.done
    return groups.count


@dataclass(frozen=True)
class Group:
    """A QuantizeLinear and the operator ``inner`` that it quantizes, clamped to ``bounds``
    (bytes)."""

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
        self.done: list[Instruction] = []
        self.count = 0

    def of(self, end: Instruction) -> list[Instruction] | None:
        """Return the replacement of the group that ends in ``end``, or None."""
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
        held = group.bounds != step.range
        output = self.values.new_bytes(target, step.dtype) if held else target
        made = self._inner(group, output)
        if made is None or not all(self.computes(self.program, each) for each in made):
            return None
        if held:
            low, high = group.bounds
            made.append(instruction_of(end.origin, "Clip", (output,), target, min=low, max=high))
        return made

    def moved(self, move: Instruction) -> list[Instruction] | None:
        """Return a movement on bytes followed by the DequantizeLinear that preceded it, or None."""
        if move.op not in MOVES or move.op == "Concat" or len(move.outputs) != 1:
            return None
        x = self.values.quantized(move.inputs[0])
        if x is None:
            return None
        before = self.values.made_by[move.inputs[0]]
        between = self.values.new_bytes(move.outputs[0], x.step.dtype)
        made = replace(move, inputs=(x.slot, *move.inputs[1:]), outputs=(between,))
        if not self.computes(self.program, made):
            return None
        after = replace(before, inputs=(between, *before.inputs[1:]), outputs=move.outputs)
        self.values.made_by[move.outputs[0]] = after
        return [made, after]

    def _group(self, end: Instruction, step: Step) -> Group | None:
        """Return the group of ``end``: the first operator above it that does not clamp, read only
        once."""
        low, high = step.range
        inner = self.values.inner(end.inputs[0])
        while inner is not None and inner.op in BOUNDS and len(inner.inputs) == 1:
            low, high = _within(inner, step, low, high)
            inner = self.values.inner(inner.inputs[0])
        if inner is None:
            return None
        if inner.op in self.fused:
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
            return self._of_two(inner, group.step, output)
        if inner.op in MOVES and len(inner.outputs) == 1:
            return self._move(inner, group.step, output)
        if inner.op == "Softmax":
            return self._softmax(inner, group.step, output)
        return self._mean(inner, group.step, output)

    def _of_two(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return a QuantizedAdd or QuantizedMul, or None."""
        a, b = (self.values.quantized(slot) for slot in inner.inputs)
        if a is None or b is None:
            return None
        named = {"a": a.step, "b": b.step, "y": step}
        attributes: dict[str, float | int] = {}
        for name, each in named.items():
            attributes |= {f"{name}_scale": float(each.scale), f"{name}_zero": each.zero}
        op = ADD if inner.op == "Add" else MUL
        return [instruction_of(inner.origin, op, (a.slot, b.slot), output, **attributes)]

    def _move(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return the movement on bytes, after lookups that convert operands to the scale of the
        result."""
        moved = inner.inputs if inner.op == "Concat" else inner.inputs[:1]
        operands = [self.values.quantized(slot) for slot in moved]
        made: list[Instruction] = []
        slots: list[int] = []
        for operand in operands:
            if operand is None:
                return None
            slot = operand.slot
            if operand.step != step:
                slot = self.values.new_bytes(operand.slot, step.dtype)
                made.append(self._table(operand, step, slot, [], inner.origin))
            slots.append(slot)
        rest = inner.inputs[len(slots) :]
        return [*made, replace(inner, inputs=(*slots, *rest), outputs=(output,))]

    def _softmax(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return a QuantizedSoftmax with its table of exponentials, or None."""
        x = self.values.quantized(inner.inputs[0])
        if x is None or inner.attributes["axis"] != len(self.program.slots[output].shape) - 1:
            return None
        scale = float(x.step.scale)
        from_max = 255 * scale > WIDEST
        steps = np.arange(256) if from_max else x.step.every_byte()
        table = np.exp((steps - steps.max()) * scale).astype(np.float32)
        attributes = {
            "from_max": int(from_max),
            "y_scale": float(step.scale),
            "y_zero": step.zero,
        }
        inputs = (x.slot, self.values.new_constant(table, "exponentials"))
        return [instruction_of(inner.origin, SOFTMAX, inputs, output, **attributes)]

    def _mean(self, inner: Instruction, step: Step, output: int) -> list[Instruction] | None:
        """Return a QuantizedMean, or None."""
        x = self.values.quantized(inner.inputs[0]) if inner.inputs else None
        size = _averaged(self.program, inner)
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
        """Return one table lookup for a chain of operators on one number between two scales, or
        None."""
        chain: list[Link] = []
        slot = end.inputs[0]
        inner = self.values.inner(slot)
        while inner is not None and (found := link(self.values, inner)) is not None:
            chain.append(found)
            slot = found.slot
            inner = self.values.inner(slot)
        x = self.values.quantized(slot)
        if x is None:
            return None
        made = self._table(x, step, end.outputs[0], chain[::-1], end.origin)
        return [made] if self.computes(self.program, made) else None

    def _table(
        self, x: Quantized, step: Step, output: int, chain: list[Link], origin: str
    ) -> Instruction:
        """Return a lookup in the table of the chain's results for all 256 bytes."""
        numbers = x.step.every_number()
        with np.errstate(all="ignore"):
            for each in chain:
                numbers = np.asarray(each.compute(numbers), np.float32)
        table = self.values.new_constant(step.quantized(numbers), "table")
        return instruction_of(origin, LOOKUP, (x.slot, table), output)


def _within(bound: Instruction, step: Step, low: int, high: int) -> tuple[int, int]:
    """Return the byte range ``low`` to ``high`` after a Relu or a Clip."""
    relu = bound.op == "Relu"
    least = 0.0 if relu else bound.attributes["min"]
    most = None if relu else bound.attributes["max"]
    if least is not None:
        first = int(step.quantized(np.asarray([least], np.float64))[0])
        low, high = max(low, first), max(high, first)
    if most is not None:
        last = int(step.quantized(np.asarray([most], np.float64))[0])
        low, high = min(low, last), min(high, last)
    return low, high


def _averaged(program: Program, inner: Instruction) -> int:
    """Return the number of trailing elements that ``inner`` averages; 0 if it is no such mean."""
    shape = program.slots[inner.inputs[0]].shape if inner.inputs else ()
    if inner.op == "ReduceMean":
        axes = inner.ints("axes")
        first = len(shape) - len(axes)
        return _elements(shape[first:]) if axes == tuple(range(first, len(shape))) else 0
    if inner.op != "AveragePool" or any(inner.ints("pads")):
        return 0
    plane = _elements(shape[2:])
    whole = plane and shape[2:] == inner.ints("kernel_shape")
    return plane if whole and set(inner.ints("dilations")) == {1} else 0


def _elements(shape: tuple[Dim, ...]) -> int:
    """Return the number of elements of this shape; 0 if a size is not a number."""
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return math.prod(sizes) if len(sizes) == len(shape) else 0
