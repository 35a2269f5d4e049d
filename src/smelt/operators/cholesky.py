"""``smelt.Cholesky``: the triangular factor of positive definite matrices.

``lower=1`` reads the lower triangle of ``a`` [..., n, n] and gives L with ``a = L @ L^T``;
``lower=0`` reads the upper one and gives U with ``a = U^T @ U``. The other triangle is 0. A matrix
that is not positive definite gives NaN in the whole triangle, as JAX does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_square
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


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of the input, which must end in two equal dims."""
    (a,) = inputs
    if a is None:
        raise ValueError("Cholesky takes one operand")
    check_square(a, "Cholesky")
    return (Result(a.dtype, a.shape),)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the factor, computed column by column for all matrices of the batch."""
    (a,) = present(inputs)
    lower = attributes["lower"]
    source = a if lower else np.swapaxes(a, -1, -2)
    n = a.shape[-1]
    factor = np.zeros_like(source)
    failed = np.zeros(a.shape[:-2], dtype=bool)
    with np.errstate(all="ignore"):
        for j in range(n):
            row = factor[..., j, :j]
            column = source[..., j:, j] - (factor[..., j:, :j] @ row[..., None])[..., 0]
            failed |= ~(column[..., 0] > 0)
            factor[..., j:, j] = column / np.sqrt(column[..., :1])
    factor = np.where(failed[..., None, None], np.tril(np.full((n, n), np.nan)), factor)
    factor = factor.astype(a.dtype)
    return (factor if lower else np.ascontiguousarray(np.swapaxes(factor, -1, -2)),)


def steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the factor column by column; a pivot that is not positive makes it NaN.

    Step k subtracts the earlier columns from column k and divides by the root of the pivot:

        below = a[:, k] - L @ L[k, :]^T
        L[k:, k] = below[k:] / sqrt(below[k])
    """
    lower = bool(attributes["lower"])
    source = a if lower else transposed(m, a)
    row_index, column_index = index_grid(m, a)
    none_failed = total(m, zeros_like(m, a), -2, -1) > 0.0  # False for each matrix of the batch

    def step(k: Tensor, factor: Tensor, failed: Tensor) -> tuple[Tensor, ...]:
        """Compute column ``k``; note matrices whose pivot is not positive."""
        earlier = product(m, factor, transposed(m, row(m, factor, k)))
        below = column(m, source, k) - earlier
        pivot = row(m, below, k)
        factor_column = m.where(row_index >= k, below / m.sqrt(pivot), 0.0)
        return m.where(m.equal(column_index, k), factor_column, factor), failed | ~(pivot > 0.0)

    factor, failed = m.repeat(size(m, a, -1), step, (zeros_like(m, a), none_failed))
    factor = m.where(failed & (row_index >= column_index), math.nan, factor)
    return (factor if lower else transposed(m, factor),)


OPERATOR = Operator(
    domain="smelt",
    name="Cholesky",
    summary="Triangular factor of positive definite matrices; NaN for others",
    inputs=("a",),
    outputs=("factor",),
    attributes=(Attribute("lower", ir.AttributeType.INT, 1),),
    infer=infer,
    reference=reference,
    body=in_double(steps),
    opset=18,
)
