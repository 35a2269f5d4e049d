"""Balances matrices so that their eigenvalues are found with less error, as ``geev`` does.

Rows and columns without off-diagonal elements are permuted to the ends. Each other row and its
column are scaled by a power of two until their norms are similar. After LAPACK's ``gebal``: B.
Parlett and C. Reinsch, "Balancing a matrix", 1969.

A matrix is a list of its parts: one tensor if it is real, two if it is complex. Each part is
``[batch, n + 1, n + 1]``, with zeros in the last row and column, which stay in place. A number per
row is ``[batch, n + 1, 1]``, a number per matrix ``[batch, 1, 1]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.matrices import (
    column,
    index_grid,
    ints,
    largest,
    product,
    row,
    transposed,
)

POWERS = 2.0 ** np.arange(41)
"""Powers of two by which a row is scaled in one step."""

GAIN = 0.95
"""A row is scaled if the sum of its norm and of its column's norm falls below this share."""

FAR = 1e75
"""Limit of the total scaling of a row; its inverse is the other limit."""


class Balanced(NamedTuple):
    """A balanced matrix: ``parts`` of ``D^-1 P^T a P D``.

    ``order`` is the permutation P; ``by`` is the diagonal of D, one number per row.
    """

    parts: Sequence[Tensor]
    order: Tensor
    by: Tensor

    def restored(self, m: Nodes, vectors: Tensor, *, left: bool) -> Tensor:
        """Return eigenvectors of ``a`` from ``vectors`` of the balanced matrix."""
        return product(m, self.order, vectors / self.by if left else vectors * self.by)


def power_of_two(m: Nodes, scale: Tensor) -> Tensor:
    """Return a power of two near the positive ``scale``; dividing by it rounds nothing."""
    exponent = m.op("Floor", m.op("Log", scale) / np.log(2.0))
    return m.op("Pow", exponent * 0.0 + 2.0, exponent)


def balanced(m: Nodes, parts: Sequence[Tensor], count: Tensor, *, scaling: bool) -> Balanced:
    """Return balanced matrices of ``count`` rows; without ``scaling``, they are only permuted.

    Rows without off-diagonal elements move to the end, then columns without them to the front. Rows
    from ``first`` to ``end`` are scaled. ``place`` is the new position of each row.
    """
    squares = _squares(parts)
    row_index, column_index = index_grid(m, squares)
    off_diagonal = m.where(m.equal(row_index, column_index) | m.equal(squares, 0.0), 0.0, 1.0)
    zero = m.op("Cast", largest(m, squares) * 0.0, to=int(ir.DataType.INT64))
    place, end = _move_isolated_rows(m, off_diagonal, zero + row_index, zero, zero + count)
    # To move columns to the front, move rows of the transposed matrix to the end, then reverse.
    transposed_mask = transposed(m, off_diagonal)
    place, last = _move_isolated_rows(
        m, transposed_mask, count - place, count - end + 1, zero + count + 1
    )
    place, first = count - place, count + 1 - last
    order = m.where(m.equal(place, column_index), 1.0, 0.0)
    parts = [product(m, transposed(m, order), product(m, part, order)) for part in parts]
    to_scale = m.where((row_index >= first) & (row_index < end), 1.0, 0.0)
    scaling_factors = to_scale * 0.0 + 1.0
    if scaling:
        scaling_factors = _scaling(
            m,
            _squares(parts) * to_scale * transposed(m, to_scale),
            scaling_factors,
            row_index,
            count,
        )
        parts = [part / scaling_factors * transposed(m, scaling_factors) for part in parts]
    return Balanced(parts, order, scaling_factors)


def _squares(parts: Sequence[Tensor]) -> Tensor:
    """Return the sum of the squares of the parts."""
    total = parts[0] * parts[0]
    for part in parts[1:]:
        total = total + part * part
    return total


def _move_isolated_rows(
    m: Nodes, off_diagonal: Tensor, place: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor]:
    """Move rows between ``low`` and ``high`` without off-diagonal elements to the end.

    ``place`` is the current position of each row; ``off_diagonal`` is 1 for nonzero off-diagonal
    elements, else 0. Rows are tried from the last up. A row that is found changes places with the
    row before ``high``, which then sinks by one; rows are tried from the last again after a pass
    that moved one. Returns ``(new position of each row, position of the first moved row)``.
    """

    def go_on(place: Tensor, high: Tensor, next_to_try: Tensor, moved: Tensor) -> Tensor:
        """True while a matrix has rows to try."""
        return next_to_try >= 0

    def step(place: Tensor, high: Tensor, next_to_try: Tensor, moved: Tensor) -> tuple[Tensor, ...]:
        """Move one row to the end if there is one to move."""
        is_between = (place >= low) & (place < high)
        columns = transposed(m, m.where(is_between, 1.0, 0.0))
        count_of_others = m.op("ReduceSum", off_diagonal * columns, ints(m, -1), keepdims=1)
        candidates = is_between & m.equal(count_of_others, 0.0) & (place < next_to_try)
        last_candidate = m.op("ReduceMax", m.where(candidates, place, -1), ints(m, -2), keepdims=1)
        is_found, end = last_candidate >= 0, high - 1
        end_vacated = m.where(m.equal(place, end) & is_found, last_candidate, place)
        place = m.where(m.equal(place, last_candidate) & is_found, end, end_vacated)
        restart = m.where(moved, high, -1)
        return (
            place,
            m.where(is_found, end, high),
            m.where(is_found, last_candidate, restart),
            is_found,
        )

    place, high, *_ = m.loop(go_on, step, (place, high, high, high < 0))
    return place, high


def _scaling(
    m: Nodes, squares: Tensor, scaling: Tensor, row_index: Tensor, count: Tensor
) -> Tensor:
    """Return the scaling of each row after sweeps over the rows until no row improves.

    ``scaling`` is the scaling to start with, ``squares`` the squares of the elements, ``row_index``
    the row of each element, ``count`` the number of rows. Row i times f and column i divided by f
    keep the eigenvalues. For each row:

    1. sum the squares of its row and of its column, with the scaling so far;
    2. find the power of 2 ``change`` that makes both norms alike;
    3. take it if the sum of the norms falls below the share ``GAIN``, and the total scaling stays
       within ``FAR``.
    """
    powers = m.tensor(m.builder.constant(POWERS))
    steps = m.tensor(m.builder.constant(4.0 * POWERS[:-1].reshape(1, 1, -1) ** 4))

    def power_of_steps(condition: Tensor) -> Tensor:
        """Return 2**k for each row, where k counts the steps for which ``condition`` holds."""
        ones = m.op("Cast", condition, to=int(ir.DataType.INT64))
        return m.op("Gather", powers, m.op("ReduceSum", ones, ints(m, -1), keepdims=1))

    def go_on(scaling: Tensor, changed: Tensor) -> Tensor:
        """True where the last sweep scaled a row."""
        return changed

    def sweep(scaling: Tensor, changed: Tensor) -> tuple[Tensor, ...]:
        """Scale each row once; ``changed`` becomes true where a row improved."""

        def step(i: Tensor, scaling: Tensor, changed: Tensor) -> tuple[Tensor, ...]:
            """Scale row ``i`` if this makes its row and column norms smaller in sum."""
            row_scale, row_weights = row(m, scaling, i), scaling * scaling
            column_squares, row_squares = column(m, squares, i), transposed(m, row(m, squares, i))
            column_squares, row_squares = (
                m.op("ReduceSum", numbers, ints(m, -2), keepdims=1)
                for numbers in (
                    column_squares / row_weights * (row_scale * row_scale),
                    row_squares * row_weights / (row_scale * row_scale),
                )
            )
            change = power_of_steps(column_squares * steps < row_squares) / power_of_steps(
                column_squares >= row_squares * steps
            )
            column_norm, row_norm = m.sqrt(column_squares), m.sqrt(row_squares)
            new_scale = row_scale * change
            allowed = (
                (column_squares > 0.0)
                & (row_squares > 0.0)
                & (new_scale < FAR)
                & (new_scale > 1.0 / FAR)
            )
            improves = allowed & (
                column_norm * change + row_norm / change < (column_norm + row_norm) * GAIN
            )
            return m.where(m.equal(row_index, i) & improves, new_scale, scaling), changed | improves

        return scaling.m.repeat(count, step, (scaling, changed & ~changed))

    scaling, _ = m.loop(go_on, sweep, (scaling, largest(m, squares) >= 0.0))
    return scaling
