"""Tensors of integers whose elements are affine in their place: start + step * index + ...

Exporters compute positions and masks from Range at run time, by chains of Expand, Slice, Concat,
CumSum and GatherND. What such a chain holds is proved here, for sizes that only a run knows. An
answer holds for every element that there is; of an empty tensor, anything does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import Dim

LARGEST_START, LARGEST_STEP = 2**31, 2**20
"""Of int64: no tensor that memory holds has an index that makes such a sum wrap around."""

LARGEST_START_OF_INT32 = 2**16
"""Of int32, where steps are at most 1: the same for tensors of less than 2**31 - 2**16 along an
axis."""


@dataclass(frozen=True)
class Affine:
    """``start`` plus, for each axis, the index along it times its step; booleans are 0 and 1."""

    start: int
    steps: tuple[int, ...]

    @property
    def is_uniform(self) -> bool:
        """True if all elements are ``start``."""
        return not any(self.steps)

    def on(self, rank: int) -> Affine:
        """The same, broadcast to ``rank`` axes."""
        return Affine(self.start, (0,) * (rank - len(self.steps)) + self.steps)

    def scaled(self, factor: int) -> Affine:
        return Affine(self.start * factor, tuple(step * factor for step in self.steps))

    def plus(self, other: Affine) -> Affine:
        """The sum of two of one rank."""
        steps = tuple(a + b for a, b in zip(self.steps, other.steps, strict=True))
        return Affine(self.start + other.start, steps)

    def bounds(self, dims: Sequence[Dim]) -> tuple[int | None, int | None]:
        """The least and the greatest element of a tensor of ``dims``; None where unbounded."""
        low: int | None = self.start
        high: int | None = self.start
        for step, dim in zip(self.steps, dims, strict=True):
            last = dim - 1 if isinstance(dim, int) else None
            if step > 0:
                high = None if high is None or last is None else high + step * last
            elif step < 0:
                low = None if low is None or last is None else low + step * last
        return low, high

    def fits(self, dtype: ir.DataType | None) -> bool:
        """True if no element leaves ``dtype``, and wraps around."""
        largest = max((abs(step) for step in self.steps), default=0)
        if dtype == ir.DataType.INT64:
            return abs(self.start) <= LARGEST_START and largest <= LARGEST_STEP
        if dtype == ir.DataType.INT32:
            return abs(self.start) <= LARGEST_START_OF_INT32 and sum(map(abs, self.steps)) <= 1
        return dtype == ir.DataType.BOOL and self.is_uniform and self.start in (0, 1)


def uniform(number: int, rank: int) -> Affine:
    """``number`` everywhere."""
    return Affine(int(number), (0,) * rank)


def of_array(array: np.ndarray) -> Affine | None:
    """What a constant holds, if that is affine."""
    if array.dtype.kind not in "bi" or not array.size:
        return None
    start = int(array.flat[0])
    steps = []
    for axis, size in enumerate(array.shape):
        second = tuple(int(other == axis) for other in range(array.ndim))
        steps.append(int(array[second]) - start if size > 1 else 0)
    expected = np.full((), start, np.int64)
    for axis, (size, step) in enumerate(zip(array.shape, steps, strict=True)):
        line = np.arange(size, dtype=np.int64) * step
        expected = expected + line.reshape((-1,) + (1,) * (array.ndim - axis - 1))
    return Affine(start, tuple(steps)) if np.array_equal(expected, array) else None


COMPARISONS: dict[str, Callable[[int | None, int | None], bool | None]] = {
    "Equal": lambda low, high: _decided(low == high == 0, _above(low, 1) or _above(high, 0, -1)),
    "Less": lambda low, high: _decided(_above(high, 1, -1), _above(low, 0)),
    "LessOrEqual": lambda low, high: _decided(_above(high, 0, -1), _above(low, 1)),
    "Greater": lambda low, high: _decided(_above(low, 1), _above(high, 0, -1)),
    "GreaterOrEqual": lambda low, high: _decided(_above(low, 0), _above(high, 1, -1)),
}
"""What the bounds of a difference tell of a comparison."""


def _above(bound: int | None, least: int, sign: int = 1) -> bool:
    return bound is not None and sign * bound >= least


def _decided(holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None
