"""Which inputs of an operator are there: arrays of a reference, values of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Input = TypeVar("Input")


def present(inputs: Sequence[Input | None]) -> list[Input]:
    """Those that are not absent."""
    return [each for each in inputs if each is not None]


def given(inputs: Sequence[Input | None], place: int) -> Input | None:
    """The input at ``place``; None if it is absent."""
    return inputs[place] if place < len(inputs) else None


def first(inputs: Sequence[Input | None]) -> Input:
    """The first input; raises ValueError if it is absent."""
    found = given(inputs, 0)
    if found is None:
        raise ValueError("the first input is missing")
    return found
