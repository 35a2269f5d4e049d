"""Access to inputs of an operator that may be absent: arrays of a reference, values of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Input = TypeVar("Input")


def present(inputs: Sequence[Input | None]) -> list[Input]:
    """Return the inputs that are not absent."""
    return [each for each in inputs if each is not None]


def given(inputs: Sequence[Input | None], place: int) -> Input | None:
    """Return the input at ``place``; None if it is absent."""
    return inputs[place] if place < len(inputs) else None


def first(inputs: Sequence[Input | None]) -> Input:
    """Return the first input; raises ValueError if it is absent."""
    found = given(inputs, 0)
    if found is None:
        raise ValueError("the first input is missing")
    return found
