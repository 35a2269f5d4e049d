"""Operators on one number, whose results for all 256 bytes fit a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from smelt.operators.elementwise import ROWS
from smelt.operators.formula import Arrays
from smelt.program.instruction import Instruction
from smelt.program.quantized_values import Values

UNARY = {"Clip", "Relu"} | {
    name
    for name, row in ROWS.items()
    if row.operands == 1 and not row.is_test and (row.formula or row.array)
}
"""Unary operators."""

BINARY = frozenset({"Add", "Sub", "Mul", "Div"})
"""Binary operators, if the other operand is constant."""


@dataclass(frozen=True)
class Link:
    """A function of the numbers in ``slot``."""

    slot: int
    compute: Callable[[np.ndarray], np.ndarray]


def link(values: Values, inner: Instruction) -> Link | None:
    """Return the function of one number that ``inner`` computes; None if it reads several
    numbers."""
    if inner.op in UNARY and len(inner.inputs) == 1:
        return Link(inner.inputs[0], partial(_apply_unary, inner))
    if inner.op not in BINARY or len(inner.inputs) != 2:
        return None
    slots = values.program.slots
    for position, slot in enumerate(inner.inputs):
        number = values.number(inner.inputs[1 - position])
        if number is not None and slots[slot].shape == slots[inner.outputs[0]].shape:
            return Link(slot, partial(_apply_binary, inner, number, position == 1))
    return None


def _apply_binary(
    instruction: Instruction, number: np.float32, is_second: bool, x: np.ndarray
) -> np.ndarray:
    """Return the result of a binary operator on ``number`` and the numbers ``x``."""
    operands = (number, x) if is_second else (x, number)
    return np.asarray(Arrays().apply(ROWS[instruction.op], *map(np.asarray, operands)))


def _apply_unary(instruction: Instruction, x: np.ndarray) -> np.ndarray:
    """Return the result of a unary operator on the numbers ``x``."""
    if instruction.op == "Relu":
        return np.asarray(np.maximum(x, 0))
    if instruction.op == "Sigmoid":
        return np.asarray(1 / (1 + np.exp(-x)))
    if instruction.op == "Clip":
        low, high = instruction.attributes["min"], instruction.attributes["max"]
        return x if low is None and high is None else np.clip(x, low, high)  # type: ignore[arg-type]
    return np.asarray(Arrays().apply(ROWS[instruction.op], x, **instruction.attributes))
