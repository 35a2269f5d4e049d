"""Integer tensors whose elements are an affine function of their index: start + step * i + ...

Exporters compute positions and masks from Range at run time, by chains of Expand, Slice, Concat,
CumSum and GatherND. This module proves the contents of such a chain even for symbolic sizes. A
proof speaks of every element that exists, so it holds vacuously for an empty tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import Dim

LARGEST_START, LARGEST_STEP = 2**31, 2**20
"""Limits for int64: no tensor that fits in memory has an index at which such a sum overflows."""

LARGEST_START_OF_INT32 = 2**16
"""Limit for int32, with steps of at most 1: no overflow along an axis of less than 2**31 - 2**16
elements."""


@dataclass(frozen=True)
class Affine:
    """The elements of a tensor as a function of their index: ``start + sum(step * index)``.

    ``steps`` has one step for each axis. Booleans count as 0 and 1.
    """

    start: int
    steps: tuple[int, ...]

    @property
    def is_uniform(self) -> bool:
        """True if all elements are ``start``."""
        return not any(self.steps)

    def broadcast_to_rank(self, rank: int) -> Affine:
        """Return this form broadcast to ``rank`` axes."""
        return Affine(self.start, (0,) * (rank - len(self.steps)) + self.steps)

    def scaled(self, factor: int) -> Affine:
        """Return this form times ``factor``."""
        return Affine(self.start * factor, tuple(step * factor for step in self.steps))

    def plus(self, other: Affine) -> Affine:
        """Return the sum of two forms of the same rank."""
        steps = tuple(a + b for a, b in zip(self.steps, other.steps, strict=True))
        return Affine(self.start + other.start, steps)

    def bounds(self, dims: Sequence[Dim]) -> tuple[int | None, int | None]:
        """Return the least and the greatest element of a tensor of shape ``dims``.

        Either is None if it depends on a symbolic size.
        """
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
        """True if no element of any tensor that fits in memory overflows ``dtype``."""
        largest = max((abs(step) for step in self.steps), default=0)
        if dtype == ir.DataType.INT64:
            return abs(self.start) <= LARGEST_START and largest <= LARGEST_STEP
        if dtype == ir.DataType.INT32:
            return abs(self.start) <= LARGEST_START_OF_INT32 and sum(map(abs, self.steps)) <= 1
        return dtype == ir.DataType.BOOL and self.is_uniform and self.start in (0, 1)


def uniform(number: int, rank: int) -> Affine:
    """Return the form of a tensor of rank ``rank`` that is filled with ``number``."""
    return Affine(int(number), (0,) * rank)


def of_array(array: np.ndarray) -> Affine | None:
    """Return the affine form of a constant, or None if its elements are not affine."""
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
    "Equal": lambda low, high: _truth_of(
        low == high == 0, _is_at_least(low, 1) or _is_at_least(high, 0, -1)
    ),
    "Less": lambda low, high: _truth_of(_is_at_least(high, 1, -1), _is_at_least(low, 0)),
    "LessOrEqual": lambda low, high: _truth_of(_is_at_least(high, 0, -1), _is_at_least(low, 1)),
    "Greater": lambda low, high: _truth_of(_is_at_least(low, 1), _is_at_least(high, 0, -1)),
    "GreaterOrEqual": lambda low, high: _truth_of(_is_at_least(low, 0), _is_at_least(high, 1, -1)),
}
"""For each comparison of a and b, a function of the bounds of ``a - b``.

It returns the result for all elements, or None if the bounds do not decide.
"""


def _is_at_least(bound: int | None, least: int, sign: int = 1) -> bool:
    """True if ``sign * bound`` is known and at least ``least``."""
    return bound is not None and sign * bound >= least


def _truth_of(holds: bool, fails: bool) -> bool | None:
    """Return True if ``holds``, False if ``fails``, None if neither is proved."""
    if holds:
        return True
    return False if fails else None
