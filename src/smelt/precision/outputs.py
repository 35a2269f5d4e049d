"""The outputs of a model over several samples, in pairs to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from smelt.ir.floats import is_float

Outputs: TypeAlias = Sequence[Mapping[str, np.ndarray]]
"""The outputs of each sample by name."""


def has_numbers(outputs: Outputs) -> bool:
    """True if an output of a sample has an element that an error can be measured on.

    NaN and infinities are none: where the model computes them, so do its changed forms.
    """
    return any(
        np.isfinite(array).any() if is_float(array.dtype) else array.size
        for sample in outputs
        for array in sample.values()
    )


def float_names(outputs: Outputs) -> list[str]:
    """Return the names of the outputs of floats."""
    first = outputs[0] if outputs else {}
    return [name for name, array in first.items() if is_float(array.dtype)]


def changed_part(reference: Outputs, outputs: Outputs) -> float:
    """Return the part of the elements that differ, of the worst output of integers or bools.

    The part is infinite if a shape differs, and 0 without such outputs.
    """
    first = reference[0] if reference else {}
    names = [name for name, array in first.items() if array.dtype.kind in "biu"]
    return max((_changed(reference, outputs, name) for name in names), default=0.0)


def _changed(reference: Outputs, outputs: Outputs, name: str) -> float:
    """Return the part of the elements of the output ``name`` that differ, over all samples."""
    changed = total = 0
    for first, second in zip(reference, outputs, strict=True):
        a, b = first[name], second[name]
        if a.shape != b.shape:
            return np.inf
        changed += int(np.count_nonzero(a != b))
        total += a.size
    return changed / max(total, 1)


def finite_pair(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ``a`` and ``b`` as float64, with 0 where both hold the same NaN or infinity.

    Returns None if their shapes differ, or one holds a NaN or infinity that the other lacks.
    """
    if a.shape != b.shape:
        return None
    first, second = a.astype(np.float64), b.astype(np.float64)
    not_finite = ~(np.isfinite(first) & np.isfinite(second))
    if not not_finite.any():
        return first, second
    if not np.array_equal(first[not_finite], second[not_finite], equal_nan=True):
        return None
    return np.where(not_finite, 0.0, first), np.where(not_finite, 0.0, second)


def rows_of(array: np.ndarray) -> np.ndarray:
    """Return ``array`` with one row per element of its first axis, or in one row."""
    if array.ndim < 2 or not array.size:
        return array.reshape(1, -1)
    return array.reshape(len(array), -1)
