"""Summarize a result: its type, range, mean, and the number of NaN and infinite elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir.floats import is_float
from smelt.runtime.interface import Value
from smelt.runtime.named_inputs import type_text_of


@dataclass(frozen=True)
class Summary:
    """The summary of one output; numbers are None if there are no elements to compute them from.

    ``nans`` counts NaN. ``infinities`` counts both infinities; they count for the range, but not
    for the mean.
    """

    name: str
    type: str
    shape: tuple[int, ...] = ()
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    nans: int = 0
    infinities: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON data, with the dtype apart from the type."""
        return {
            "name": self.name,
            "type": self.type,
            "dtype": self.type.partition("[")[0],
            "shape": list(self.shape),
            "min": self.minimum,
            "max": self.maximum,
            "mean": self.mean,
            "nans": self.nans,
            "infinities": self.infinities,
        }


def summarize(name: str, value: Value) -> list[Summary]:
    """Return the summary of ``value``; for a sequence one summary for each item."""
    if isinstance(value, list):
        return [s for i, item in enumerate(value) for s in summarize(f"{name}[{i}]", item)]
    if not isinstance(value, np.ndarray):
        return [Summary(name, "absent" if value is None else "map")]
    array = value
    if array.dtype.kind not in "biuf" and not is_float(array.dtype):
        return [Summary(name, type_text_of(array), array.shape)]
    return [_of_numbers(name, array)]


def _of_numbers(name: str, array: np.ndarray) -> Summary:
    """Return the summary of a numeric array; NaN is excluded from the range."""
    type_ = type_text_of(array)
    if array.dtype.kind in "biu":
        if not array.size:
            return Summary(name, type_, array.shape)
        mean = float(array.mean(dtype=np.float64))
        return Summary(name, type_, array.shape, int(array.min()), int(array.max()), mean)
    doubles = array.astype(np.float64)
    numbers = doubles[~np.isnan(doubles)]
    finite = numbers[np.isfinite(numbers)]
    return Summary(
        name,
        type_,
        array.shape,
        float(numbers.min()) if numbers.size else None,
        float(numbers.max()) if numbers.size else None,
        float(finite.mean()) if finite.size else None,
        doubles.size - numbers.size,
        numbers.size - finite.size,
    )
