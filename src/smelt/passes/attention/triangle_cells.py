"""Describe a square matrix that depends only on the side of the diagonal by three cells.

The cells are the values left of the diagonal, on it and right of it. Elementwise operators apply to
the cells, so triangles are recognized without a pattern for each form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

ROWS, COLUMNS = np.array([1, 1, 0]), np.array([0, 1, 1])
"""Numbers that compare in each cell as row and column positions do."""

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **_COMPARISONS,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Not": np.logical_not,
    "Where": np.where,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
}
ELEMENTWISE = frozenset(_ELEMENTWISE)
"""Operators that ``elementwise`` supports."""

_POSITIONS = (ir.DataType.INT32, ir.DataType.INT64)
"""Dtypes that hold every position."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The three numbers, or, if ``are_positions``, numbers in the order of positions on an axis."""

    numbers: np.ndarray
    are_positions: bool = False

    @property
    def is_uniform(self) -> bool:
        """True if all elements are the same number."""
        return not self.are_positions and bool((self.numbers == self.numbers[0]).all())


def uniform(number: np.ndarray | np.generic) -> Cells:
    """Return the cells of a matrix filled with one number."""
    return Cells(np.broadcast_to(np.reshape(number, ()), 3))


def elementwise(kind: str, operands: Sequence[Cells]) -> Cells | None:
    """Return the result of the operator ``kind`` on cells; None if it would need exact
    positions."""
    with_positions = any(operand.are_positions for operand in operands)
    only_positions = all(operand.are_positions for operand in operands)
    if with_positions and not (only_positions and kind in _COMPARISONS):
        return None
    with np.errstate(all="ignore"):
        return Cells(_ELEMENTWISE[kind](*(operand.numbers for operand in operands)))


def cast(cells: Cells, dtype: ir.DataType | None) -> Cells | None:
    """Return the cells in another dtype; None if runtimes may differ in the result."""
    if cells.are_positions:
        return cells if dtype in _POSITIONS else None
    if dtype is None or (kind := dtype.numpy().kind) not in "biuf":
        return None
    if kind in "iu" and cells.numbers.dtype.kind != "b":
        return None
    with np.errstate(all="ignore"):
        return Cells(cells.numbers.astype(dtype.numpy()))


def trilu(cells: Cells, upper: bool, k: int) -> Cells | None:
    """Return the cells of Trilu with offset ``k``; None if it cuts through a cell."""
    sides = np.array([-1, 0, 1])
    if cells.are_positions or k not in ((0, 1) if upper else (-1, 0)):
        return None
    kept = sides >= k if upper else sides <= k
    return Cells(np.where(kept, cells.numbers, np.zeros_like(cells.numbers)))


def triangles(array: np.ndarray) -> Cells | None:
    """Return the cells of a square constant of at least two rows, or of a stack of equal ones; else
    None.
    """
    before, diagonal, after = (array[(0,) * (array.ndim - 2)][i] for i in ((1, 0), (0, 0), (0, 1)))
    size = array.shape[-1]
    if not (array[..., -1, :-1] == before).all():  # the last row is cheap to compare
        return None
    expected = np.where(np.tri(size, k=-1, dtype=np.bool_), before, after)
    np.fill_diagonal(expected, diagonal)
    same = bool((array == expected).all())
    return Cells(np.array([before, diagonal, after])) if same else None
