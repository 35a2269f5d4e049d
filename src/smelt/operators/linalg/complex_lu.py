"""``smelt.ComplexLU``: triangular factors of complex matrices, by parts, with partial pivoting.

As ``smelt.LU``. The pivot has the largest sum of magnitudes of both parts, as in LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import map_matrices, smaller_dim
from smelt.operators.linalg.complex_operands import complex_of, parts_of
from smelt.operators.linalg.lu import counted, first_greatest, permutation_of, pivot_row, swapped
from smelt.operators.linalg.matrices import (
    column,
    count_to,
    in_double,
    index_grid,
    ints,
    row,
    size,
    smaller,
    total,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return the types of the parts of the factors, and int32 for each pivot and each row."""
    shape, dtype = parts_of(inputs, "ComplexLU")
    integer = ir.DataType.INT32
    if shape is None:
        return [Result(dtype, None)] * 2 + [Result(integer, None)] * 2
    *batch, rows, columns = shape.dims
    pivots = Result(integer, ir.Shape([*batch, smaller_dim(rows, columns)]))
    order = Result(integer, ir.Shape([*batch, rows]))
    return [Result(dtype, shape), Result(dtype, shape), pivots, order]


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return both parts of the packed factors, the pivots and the permutation of each matrix."""
    re, im = present(inputs)
    rows, columns = re.shape[-2:]
    shapes = (rows, columns), (rows, columns), (min(rows, columns),), (rows,)
    return map_matrices(
        _factor,
        shapes=shapes,
        dtypes=(re.dtype, re.dtype, np.int32, np.int32),
        arrays=(re, im),
        ranks=(2, 2),
    )


def _factor(re: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
    """Return the parts of the factors, pivots and permutation of one matrix."""
    lu = complex_of(re, im)
    pivots = np.zeros(min(lu.shape), np.int32)
    for k in range(len(pivots)):
        pivot = k + first_greatest(np.abs(lu[k:, k].real) + np.abs(lu[k:, k].imag))
        pivots[k] = pivot
        lu[[k, pivot]] = lu[[pivot, k]]
        if lu[k, k] != 0:
            lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return [lu.real, lu.imag, pivots, permutation_of(pivots, len(lu))]


def steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build both parts of the packed factors, the pivots and the permutation.

    Step k swaps the pivot row to row k and eliminates column k below it:

        factor = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= factor * a[k, k + 1 :]
    """
    row_index, column_index = index_grid(m, re)
    rows = size(m, re, -2)
    count = smaller(m, rows, size(m, re, -1))
    pivot_indices = count_to(m, count)

    def step(
        k: Tensor, re: Tensor, im: Tensor, pivots: Tensor, permutation: Tensor
    ) -> tuple[Tensor, ...]:
        """Swap the pivot row to row ``k``, and eliminate column ``k`` below it."""
        sizes = m.abs(column(m, re, k)) + m.abs(column(m, im, k))
        pivot = pivot_row(m, row_index, k, sizes)
        is_pivot = m.equal(row_index, pivot)
        pivot_re, pivot_im = (total(m, m.where(is_pivot, part, 0.0), -2) for part in (re, im))
        re, im = (
            m.where(m.equal(row_index, k), pivot_part, m.where(is_pivot, row(m, part, k), part))
            for part, pivot_part in ((re, pivot_re), (im, pivot_im))
        )
        factor_re, factor_im = _quotient(
            m, (column(m, re, k), column(m, im, k)), (pivot_re, pivot_im), k
        )
        is_inner = (row_index > k) & (column_index > k)
        is_below = (row_index > k) & m.equal(column_index, k)
        re = m.where(
            is_inner,
            re - (factor_re * pivot_re - factor_im * pivot_im),
            m.where(is_below, factor_re, re),
        )
        im = m.where(
            is_inner,
            im - (factor_re * pivot_im + factor_im * pivot_re),
            m.where(is_below, factor_im, im),
        )
        pivot_number = m.op("Squeeze", pivot, ints(m, -1))
        pivots = m.where(m.equal(pivot_indices, k), pivot_number, pivots)
        return re, im, pivots, swapped(m, permutation, k, pivot_number)

    start = (re, im, counted(m, re, count), counted(m, re, rows))
    return m.repeat(count, step, start)


def _quotient(
    m: Nodes, a: tuple[Tensor, Tensor], pivot_row: tuple[Tensor, Tensor], k: Tensor
) -> tuple[Tensor, Tensor]:
    """Divide ``a`` by element ``k`` of ``pivot_row``; return ``a`` where that element is 0.

    The divisor is scaled first, so its square does not overflow.
    """
    unit_re, unit_im = (column(m, part, k) for part in pivot_row)
    magnitude = m.op("Max", m.abs(unit_re), m.abs(unit_im))
    zero = m.equal(magnitude, 0.0)
    scale = m.where(zero, 1.0, magnitude)
    unit_re, unit_im = m.where(zero, 1.0, unit_re / scale), unit_im / scale
    divisor = scale * (unit_re * unit_re + unit_im * unit_im)
    return (a[0] * unit_re + a[1] * unit_im) / divisor, (a[1] * unit_re - a[0] * unit_im) / divisor


OPERATOR = Operator(
    domain="smelt",
    name="ComplexLU",
    summary="Triangular factors of complex matrices with partial pivoting, by parts",
    inputs=("real", "imaginary"),
    outputs=("lu_real", "lu_imaginary", "pivots", "permutation"),
    infer=infer,
    reference=reference,
    body=in_double(steps, 2, 2),
    opset=18,
)
