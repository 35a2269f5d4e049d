"""``smelt.Eigh``: eigenvectors and ascending eigenvalues of symmetric matrices.

Only the triangle that ``lower`` names is read. A matrix that is not finite gives NaN. The sign of a
vector, and the vectors of equal values, are not determined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_square, map_matrices
from smelt.operators.linalg.jacobi import SWEEPS, partners, rotated_columns, rotation, rounds_of
from smelt.operators.linalg.matrices import (
    in_double,
    index_grid,
    ints,
    largest,
    size,
    total,
    transposed,
    zeros_like,
)

TOLERANCE = 1e-16
"""At convergence, off-diagonal elements have at most ``order * TOLERANCE ** 2`` of all squares."""


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``a`` for the vectors, and of its rows for the values."""
    (a,) = inputs
    if a is None:
        raise ValueError("Eigh takes one operand")
    check_square(a, "Eigh")
    values = None if a.shape is None else ir.Shape(a.shape.dims[:-1])
    return Result(a.dtype, a.shape), Result(a.dtype, values)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return vectors and values by LAPACK's ``syevd``; NaN for a matrix that is not finite."""
    (a,) = present(inputs)
    lower = bool(attributes["lower"])

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return vectors and values of one matrix."""
        if not np.isfinite(np.tril(matrix) if lower else np.triu(matrix)).all():
            return np.full_like(matrix, np.nan), np.full_like(matrix[0], np.nan)
        values, vectors = np.linalg.eigh(matrix, "L" if lower else "U")
        return vectors, values

    return map_matrices(
        decompose,
        shapes=(a.shape[-2:], a.shape[-1:]),
        dtypes=(a.dtype, a.dtype),
        arrays=(a,),
        ranks=(2,),
    )


def steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build vectors and ascending values by Jacobi rotations.

    Rounds repeat until the off-diagonal elements are rounding errors; a matrix that does not
    converge gives NaN.
    """
    row_index, column_index = index_grid(m, a)
    a, scale, usable = _scaled_symmetric(
        m, a, row_index, column_index, lower=bool(attributes["lower"])
    )
    count = size(m, a, -1)
    rounds = rounds_of(m, count)
    limit = rounds * SWEEPS
    round_number = count * 0
    is_off_diagonal = m.where(m.equal(row_index, column_index), 0.0, 1.0)
    order = m.op("Cast", count, to=int(ir.DataType.DOUBLE))

    def go_on(round_number: Tensor, a: Tensor, v: Tensor) -> Tensor:
        """True while off-diagonal elements are not negligible and the limit is not reached."""
        off_diagonal = _square_sum(m, a * is_off_diagonal)
        return (off_diagonal > _square_sum(m, a) * (order * TOLERANCE * TOLERANCE)) & (
            round_number < limit
        )

    def step(round_number: Tensor, a: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """Rotate all pairs of one round, from both sides."""
        partner = partners(m, count, m.op("Mod", round_number, rounds))
        diagonal = total(m, m.where(m.equal(row_index, column_index), a, 0.0), -2)
        is_partner = m.equal(row_index, m.op("Unsqueeze", partner, ints(m, 0)))
        off_diagonal = total(m, m.where(is_partner, a, 0.0), -2)
        partner_diagonal = m.op("Gather", diagonal, partner, axis=-1)
        cosine, sine = rotation(m, diagonal, partner_diagonal, off_diagonal, partner)
        a = transposed(m, rotated_columns(m, a, cosine, sine, partner))
        # Set the rotated elements to exactly 0, so that rounding cannot prevent convergence.
        a = m.where(
            is_partner & ~m.equal(row_index, column_index),
            0.0,
            rotated_columns(m, a, cosine, sine, partner),
        )
        return round_number + 1, a, rotated_columns(m, v, cosine, sine, partner)

    start = (
        round_number,
        a,
        zeros_like(m, a) + m.where(m.equal(row_index, column_index), 1.0, 0.0),
    )
    round_number, a, v = m.loop(go_on, step, start)
    failed = (round_number >= limit) & (count > 1)
    diagonal = total(m, m.where(m.equal(row_index, column_index), a, 0.0), -2)
    ascending_values, order_of_values = ascending(m, diagonal, count)
    index = m.op("Expand", order_of_values, m.op("Shape", v))
    v = m.op("GatherElements", v, index, axis=-1)
    failed_or_infinite = failed | ~usable
    values = m.where(failed_or_infinite, math.nan, ascending_values * scale)
    return m.where(failed_or_infinite, math.nan, v), m.op("Squeeze", values, ints(m, -2))


def _scaled_symmetric(
    m: Nodes, a: Tensor, row_index: Tensor, column_index: Tensor, *, lower: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(matrix / scale, scale, mask of finite matrices)``.

    The matrix is symmetric, from the ``lower`` or upper triangle of ``a``, and ``scale`` is its
    largest magnitude. Matrices that are not finite become zeros.
    """
    triangle = m.where(row_index >= column_index if lower else row_index <= column_index, a, 0.0)
    mirrored = transposed(m, m.where(m.equal(row_index, column_index), 0.0, triangle))
    scale = largest(m, triangle)
    usable = scale < math.inf
    scale = m.where(usable & (scale > 0.0), scale, 1.0)
    return m.where(usable, (triangle + mirrored) / scale, 0.0), scale, usable


def _square_sum(m: Nodes, a: Tensor) -> Tensor:
    """Return the sum of the squares of each matrix."""
    return total(m, a * a, -2, -1)


def ascending(m: Nodes, row: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return the elements of the row in ascending order, and their indices."""
    k = m.op("Unsqueeze", count, ints(m, 0))
    values, order = m.ops("TopK", row, k, outputs=2, axis=-1, largest=0, sorted=1)
    return values, order


OPERATOR = Operator(
    domain="smelt",
    name="Eigh",
    summary="Eigenvectors and ascending eigenvalues of symmetric matrices",
    inputs=("a",),
    outputs=("vectors", "values"),
    attributes=(Attribute("lower", ir.AttributeType.INT, 1),),
    infer=infer,
    reference=reference,
    body=in_double(steps),
    opset=18,
)
