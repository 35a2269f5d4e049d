"""``smelt.ComplexCholesky``: the lower factor of positive definite Hermitian matrices, by parts.

It reads the lower triangle, and the real part of the diagonal, and gives L with ``a = L @ L^H``, 0
above the diagonal. A matrix that is not positive definite gives NaN in the whole triangle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import map_matrices
from smelt.operators.linalg.complex_operands import complex_of, parts_of
from smelt.operators.linalg.matrices import (
    column,
    in_double,
    index_grid,
    product,
    row,
    size,
    total,
    transposed,
    zeros_like,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return the type of the matrices for each part of the factor."""
    shape, dtype = parts_of(inputs, "ComplexCholesky", square=True)
    return [Result(dtype, shape)] * 2


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return both parts of the factor, computed column by column for each matrix."""
    re, im = present(inputs)
    return map_matrices(
        _factor, shapes=(re.shape[-2:],) * 2, dtypes=(re.dtype,) * 2, arrays=(re, im), ranks=(2, 2)
    )


def _factor(re: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
    """Return both parts of the factor of one matrix."""
    a = complex_of(re, im)
    factor = np.zeros_like(a)
    for j in range(len(a)):
        below = a[j:, j] - factor[j:, :j] @ factor[j, :j].conj()
        if not below[0].real > 0:
            return [np.tril(np.full_like(re, np.nan))] * 2
        root = np.sqrt(below[0].real)
        factor[j:, j] = below / root
        factor[j, j] = root
    return [factor.real, factor.imag]


def steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build both parts of the factor column by column; a pivot that is not positive gives NaN.

    Step k, with L as far as it is known and row k of it conjugated:

        column = a[:, k] - L @ conj(L[k, :])
        L[k:, k] = column[k:] / sqrt(column[k])
    """
    row_index, column_index = index_grid(m, re)
    failed = total(m, zeros_like(m, re), -2, -1) > 0.0

    def step(k: Tensor, x: Tensor, y: Tensor, failed: Tensor) -> tuple[Tensor, ...]:
        """Compute column ``k`` of the factor."""
        row_re, row_im = transposed(m, row(m, x, k)), transposed(m, row(m, y, k))
        new_re = column(m, re, k) - product(m, x, row_re) - product(m, y, row_im)
        new_im = column(m, im, k) - product(m, y, row_re) + product(m, x, row_im)
        pivot = row(m, new_re, k)
        root = m.sqrt(pivot)
        in_column = m.equal(column_index, k)
        x = m.where(in_column, m.where(row_index >= k, new_re / root, 0.0), x)
        y = m.where(in_column, m.where(row_index > k, new_im / root, 0.0), y)
        return x, y, failed | ~(pivot > 0.0)

    start = (zeros_like(m, re), zeros_like(m, re), failed)
    x, y, failed = m.repeat(size(m, re, -1), step, start)
    spoiled = failed & (row_index >= column_index)
    return m.where(spoiled, math.nan, x), m.where(spoiled, math.nan, y)


OPERATOR = Operator(
    domain="smelt",
    name="ComplexCholesky",
    summary="Lower factor of positive definite Hermitian matrices, by parts; NaN for others",
    inputs=("real", "imaginary"),
    outputs=("factor_real", "factor_imaginary"),
    infer=infer,
    reference=reference,
    body=in_double(steps, 2, 2),
    opset=18,
)
