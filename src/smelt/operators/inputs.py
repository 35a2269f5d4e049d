"""Access to inputs of an operator that may be absent: arrays of a reference, values of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Input = TypeVar("Input")


def present(inputs: Sequence[Input | None]) -> list[Input]:
    """Return the inputs that are not absent."""
    return [value for value in inputs if value is not None]


def input_at(inputs: Sequence[Input | None], index: int) -> Input | None:
    """Return the input at ``index``; None if it is absent."""
    return inputs[index] if index < len(inputs) else None


def first(inputs: Sequence[Input | None]) -> Input:
    """Return the first input; raises ValueError if it is absent."""
    value = input_at(inputs, 0)
    if value is None:
        raise ValueError("the first input is missing")
    return value


def filled(inputs: Sequence[Input | None], count: int) -> list[Input | None]:
    """Return ``count`` inputs, with None for those that are left out at the end."""
    return [input_at(inputs, index) for index in range(count)]
