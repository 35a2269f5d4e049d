"""Merges instructions that depend on one byte into one table lookup.

    before   b = table[x];  c = other[b];  y = QuantizedMul(x, c)
    after    y = table_of_all[x]

An activation that is written as several quantized operators becomes one table of 256 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from smelt.program.instruction import Instruction, Program
from smelt.program.quantized import ADD, LOOKUP, MUL, SOFTMAX
from smelt.program.quantized_values import Values, instruction_of

Computes = Callable[[Program, Instruction], bool]


def run(program: Program, computes: Computes) -> int:
    """Replace instructions that depend on one byte through others by a lookup; return their
    number."""
    values = Values(program)
    known: dict[int, _Table] = {}
    instructions: list[Instruction] = []
    count = 0
    for step in program.instructions:
        table = _table_of(program, known, step)
        if table is None:
            instructions.append(_with_merged_exponentials(values, known, step))
            continue
        known[step.outputs[0]] = table
        lookup = step
        if step.op != LOOKUP or step.inputs[0] != table.source:
            slot = values.new_constant(table.bytes, "table")
            lookup = instruction_of(step.origin, LOOKUP, (table.source, slot), step.outputs[0])
        if lookup is not step and not computes(program, lookup):
            lookup = step
        count += lookup is not step
        instructions.append(lookup)
    program.instructions = instructions
    return count


@dataclass(frozen=True)
class _Table:
    """The ``bytes`` that result from each byte of the slot ``source``, in order of the byte's
    memory value."""

    source: int
    bytes: np.ndarray


def _table_of(program: Program, known: dict[int, _Table], step: Instruction) -> _Table | None:
    """Return the table of ``step``; None if it depends on several bytes or is another operator."""
    if step.op == LOOKUP:
        table = program.constants.get(step.inputs[1])
        if table is None:
            return None
        before = known.get(step.inputs[0])
        if before is None:
            return _Table(step.inputs[0], table)
        return _Table(before.source, table[before.bytes.view(np.uint8)])
    if step.op not in (ADD, MUL):
        return None
    a, b = (known.get(slot) or _identity(program, slot) for slot in step.inputs)
    shapes = {program.slots[slot].shape for slot in (*step.inputs, *step.outputs)}
    if a.source != b.source or len(shapes) > 1:
        return None
    return _Table(a.source, _combined(program, step, a.bytes, b.bytes))


def _with_merged_exponentials(
    values: Values, known: dict[int, _Table], step: Instruction
) -> Instruction:
    """Return a Softmax with the lookups before it merged into its table; other instructions
    unchanged."""
    if step.op != SOFTMAX:
        return step
    before = known.get(step.inputs[0])
    exponentials = values.program.constants.get(step.inputs[1])
    if before is None or exponentials is None or step.attributes["from_max"]:
        return step
    table = values.new_constant(exponentials[before.bytes.view(np.uint8)], "exponentials")
    return replace(step, inputs=(before.source, table))


def _identity(program: Program, slot: int) -> _Table:
    """Return the identity table of ``slot``, with which a chain of lookups begins."""
    codes = np.arange(256, dtype=np.uint8).view(program.slots[slot].dtype.numpy())
    return _Table(slot, codes)


def _combined(program: Program, step: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the table of ``a + b`` or ``a * b`` for tables ``a`` and ``b``, rounded as in the
    kernel of ``step``.
    """
    dtype = program.slots[step.outputs[0]].dtype.numpy()
    names = ("a", "b", "y")
    scales = [np.float32(step.attributes[f"{name}_scale"]) for name in names]  # type: ignore[arg-type]
    zeros = [np.float32(step.attributes[f"{name}_zero"]) for name in names]  # type: ignore[arg-type]
    first, second = a.astype(np.float32), b.astype(np.float32)
    if step.op == ADD:
        left_factor, right_factor = scales[0] / scales[2], scales[1] / scales[2]
        offset = zeros[2] - (left_factor * zeros[0] + right_factor * zeros[1])
        exact = (offset + first * left_factor) + second * right_factor
    else:
        factor = scales[0] * scales[1] / scales[2]
        exact = (first - zeros[0]) * (second - zeros[1]) * factor + zeros[2]
    limits = np.iinfo(dtype)
    return np.clip(np.rint(exact), limits.min, limits.max).astype(dtype)
