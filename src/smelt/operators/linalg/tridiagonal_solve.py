"""``smelt.TridiagonalSolve``: solve systems whose matrix has three diagonals, with pivoting.

``lower``, ``diagonal`` and ``upper`` are [..., n]; ``lower[0]`` and ``upper[n - 1]`` are not read.
``b`` is [..., n, k]. A singular matrix gives NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.batches import check_matrices, map_matrices
from smelt.operators.linalg.matrices import (
    in_double,
    index_grid,
    ints,
    row,
    size,
    total,
    zeros_like,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``b``."""
    shapes = [check_matrices(x, "TridiagonalSolve", rank=1) for x in inputs[:3]]
    b = inputs[3]
    shape = check_matrices(b, "TridiagonalSolve")
    if shape is not None and any(s is not None and len(s) != len(shape) - 1 for s in shapes):
        raise ValueError("a diagonal has one dim less than b")
    assert b is not None
    return (Result(b.dtype, shape),)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the solution: each step eliminates the lower diagonal of one row."""
    lower, diagonal, upper, b = (np.asarray(array) for array in inputs)
    arrays = (lower, diagonal, upper, b)
    return map_matrices(
        _solve, shapes=(b.shape[-2:],), dtypes=(b.dtype,), arrays=arrays, ranks=(1, 1, 1, 2)
    )


def _solve(
    lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the solution of one system, in a tuple, by elimination with row swaps.

    Only adjacent rows are swapped, so a row of the upper triangle has up to three elements.
    """
    n = len(diagonal)
    # Row i of the upper triangle is at i, i + 1 and i + 2.
    rows = np.zeros((n, 3), b.dtype)
    rows[:, 0], rows[:-1, 1] = diagonal, upper[:-1]
    x = b.copy()
    for i in range(n - 1):
        below = np.array([lower[i + 1], rows[i + 1, 0], rows[i + 1, 1]])
        if abs(below[0]) > abs(rows[i, 0]):
            rows[i], below = below, rows[i].copy()
            x[[i, i + 1]] = x[[i + 1, i]]
        factor = below[0] / rows[i, 0]
        rows[i + 1, :2] = below[1:] - factor * rows[i, 1:]
        x[i + 1] -= factor * x[i]
    if not np.all(rows[:, 0] != 0) or np.isnan(rows[:, 0]).any():
        return (np.full_like(b, np.nan),)
    for i in reversed(range(n)):
        for j in range(1, min(3, n - i)):
            x[i] -= rows[i, j] * x[i + j]
        x[i] /= rows[i, 0]
    return (x,)


def steps(m: Nodes, attributes: Attributes, *arrays: Tensor) -> tuple[Tensor, ...]:
    """Build the solution: elimination from the first row down, then substitution from the last row
    up.

    Row i of the upper triangle has the elements ``first``, ``second`` and ``third`` at columns i, i
    + 1 and i + 2: a swap of rows fills the third. ``lower`` is left of the diagonal.
    """
    lower, first, second = (m.op("Unsqueeze", array, ints(m, -1)) for array in arrays[:3])
    b = arrays[3]
    row_index, n = index_grid(m, b)[0], size(m, b, -2)
    second = m.where(m.equal(row_index, n - 1), 0.0, second)

    def eliminate(
        i: Tensor, first: Tensor, second: Tensor, third: Tensor, x: Tensor
    ) -> tuple[Tensor, ...]:
        """Eliminate below row ``i``, with rows swapped if the lower pivot is larger."""
        upper = [row(m, array, i) for array in (first, second, third, x)]
        below = [row(m, array, i + 1) for array in (lower, first, second, x)]
        swap = m.abs(below[0]) > m.abs(upper[0])
        pivot = [
            m.where(swap, lower_number, upper_number)
            for upper_number, lower_number in zip(upper, below, strict=True)
        ]
        lower_row = [
            m.where(swap, upper_number, lower_number)
            for upper_number, lower_number in zip(upper, below, strict=True)
        ]
        factor = lower_row[0] / pivot[0]
        remainder = [b - factor * a for a, b in zip(pivot[1:], lower_row[1:], strict=True)]
        is_row, is_next = m.equal(row_index, i), m.equal(row_index, i + 1)
        return (
            m.where(is_row, pivot[0], m.where(is_next, remainder[0], first)),
            m.where(is_row, pivot[1], m.where(is_next, remainder[1], second)),
            m.where(is_row, pivot[2], third),
            m.where(is_row, pivot[3], m.where(is_next, remainder[2], x)),
        )

    start = (first, second, zeros_like(m, first), b)
    first, second, third, b = m.repeat(m.maximum(n - 1, 0), eliminate, start)

    def substitute(
        k: Tensor, x: Tensor, below_by_one: Tensor, below_by_two: Tensor
    ) -> tuple[Tensor, ...]:
        """Compute row ``n - 1 - k`` of the solution from the two rows below it."""
        i = n - 1 - k
        from_below = row(m, second, i) * below_by_one + row(m, third, i) * below_by_two
        value = (row(m, b, i) - from_below) / row(m, first, i)
        return m.where(m.equal(row_index, i), value, x), value, below_by_one

    zeros = total(m, zeros_like(m, b), -2)
    x, _, _ = m.repeat(n, substitute, (zeros_like(m, b), zeros, zeros))
    singular = total(m, m.where(m.abs(first) > 0.0, 0.0, 1.0), -2) > 0.0
    return (m.where(singular, math.nan, x),)


OPERATOR = Operator(
    domain="smelt",
    name="TridiagonalSolve",
    summary="Solution of systems with three diagonals",
    inputs=("lower", "diagonal", "upper", "b"),
    outputs=("x",),
    infer=infer,
    reference=reference,
    body=in_double(steps, 1, 1, 1, 2),
    opset=18,
)
