"""``smelt.Cholesky``: the triangular factor of positive definite matrices.

``lower=1`` reads the lower triangle of ``a`` [..., n, n] and gives L with ``a = L @ L^T``;
``lower=0`` reads the upper one and gives U with ``a = U^T @ U``. The other triangle is 0. A matrix
that is not positive definite gives NaN in the whole triangle, as JAX does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Attribute, Attributes, Operator, Result


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """The type of the input, which must end in two equal dims."""
    (a,) = inputs
    if a is None:
        raise ValueError("Cholesky takes one operand")
    check_square(a, "Cholesky")
    return (Result(a.dtype, a.shape),)


def check_square(a: ir.Value, name: str) -> None:
    """Raise ValueError unless ``a`` may hold square matrices of float32 or float64."""
    if a.dtype is not None and a.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        raise ValueError(f"{name} takes float32 or float64, not {a.dtype.name.lower()}")
    if a.shape is None:
        return
    if len(a.shape) < 2:
        raise ValueError(f"{name} takes matrices, not rank {len(a.shape)}")
    rows, columns = a.shape[-2], a.shape[-1]
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ValueError(f"{name} takes square matrices, not {rows} by {columns}")


def reference(
    inputs: Sequence[np.ndarray | None], attributes: Attributes
) -> tuple[np.ndarray, ...]:
    """Column by column, over all matrices of the batch at once."""
    (a,) = inputs
    assert a is not None
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


OPERATOR = Operator(
    domain="smelt",
    name="Cholesky",
    summary="Triangular factor of positive definite matrices; NaN for others",
    inputs=("a",),
    outputs=("factor",),
    attributes=(Attribute("lower", ir.AttributeType.INT, 1),),
    infer=infer,
    reference=reference,
)
