"""``smelt.TriangularSolve``: solve ``op(a) @ x = b``, or ``x @ op(a) = b``, for a triangular ``a``.

``a`` is [..., m, m] with the batch dims of ``b``, which is [..., m, n] if ``left_side``, else
[..., n, m]. Only the triangle that ``lower`` names is read, without its diagonal if
``unit_diagonal``. A zero on the diagonal divides by zero, as in BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import conflicting_shapes
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
    transposed,
    zeros_like,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``b``."""
    a, b = inputs
    if a is None or b is None:
        raise ValueError("TriangularSolve takes two operands")
    check_square(a, "TriangularSolve")
    if a.dtype is not None and b.dtype is not None and a.dtype != b.dtype:
        raise ValueError(f"element types {a.dtype} and {b.dtype} differ")
    if a.shape is not None and b.shape is not None:
        if len(a.shape) != len(b.shape):
            raise ValueError(f"ranks {len(a.shape)} and {len(b.shape)} differ")
        solved_size = b.shape[-2] if attributes["left_side"] else b.shape[-1]
        batch = ir.Shape([*a.shape[:-2], a.shape[-1]]), ir.Shape([*b.shape[:-2], solved_size])
        if conflicting_shapes(*batch):
            raise ValueError(f"shapes {a.shape} and {b.shape} do not fit")
    return (Result(b.dtype, b.shape),)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the solution, substituted row by row for the whole batch."""
    a, b = present(inputs)
    lower = bool(attributes["lower"])
    matrix, right_hand_side = a, b
    if attributes["transpose_a"]:
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
    if not attributes["left_side"]:  # x @ m = b  is  m^T @ x^T = b^T
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        right_hand_side = np.swapaxes(right_hand_side, -1, -2)
    x = np.array(right_hand_side)
    size = matrix.shape[-1]
    with np.errstate(all="ignore"):
        order = range(size) if lower else reversed(range(size))
        for i in order:
            solved_rows = slice(0, i) if lower else slice(i + 1, size)
            x[..., i, :] -= (matrix[..., i : i + 1, solved_rows] @ x[..., solved_rows, :])[
                ..., 0, :
            ]
            if not attributes["unit_diagonal"]:
                x[..., i, :] /= matrix[..., i, i, None]
    return (x if attributes["left_side"] else np.ascontiguousarray(np.swapaxes(x, -1, -2)),)


def steps(m: Nodes, attributes: Attributes, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Build the solution, substituted row by row.

    Row i (from the first for a lower triangle, else from the last):

        x[i] = (b[i] - a[i, known] @ x[known]) / a[i, i]
    """
    lower, left_side = bool(attributes["lower"]), bool(attributes["left_side"])
    # x @ m = b  is  m^T @ x^T = b^T
    if bool(attributes["transpose_a"]) == left_side:
        a, lower = transposed(m, a), not lower
    right_hand_side = b if left_side else transposed(m, b)
    columns = index_grid(m, a)[1]
    row_index, count = index_grid(m, right_hand_side)[0], size(m, a, -1)

    def step(k: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        """Compute one row of the solution."""
        i = k if lower else count - 1 - k
        line = row(m, a, i)
        coefficients = m.where(columns < i if lower else columns > i, line, 0.0)
        value = row(m, right_hand_side, i) - product(m, coefficients, x)
        if not attributes["unit_diagonal"]:
            value = value / column(m, line, i)
        return (m.where(m.equal(row_index, i), value, x),)

    (x,) = m.repeat(count, step, (zeros_like(m, right_hand_side),))
    return (x if left_side else transposed(m, x),)


OPERATOR = Operator(
    domain="smelt",
    name="TriangularSolve",
    summary="Solution of a triangular system, on either side",
    inputs=("a", "b"),
    outputs=("x",),
    attributes=(
        Attribute("left_side", ir.AttributeType.INT, 1),
        Attribute("lower", ir.AttributeType.INT, 1),
        Attribute("transpose_a", ir.AttributeType.INT, 0),
        Attribute("unit_diagonal", ir.AttributeType.INT, 0),
    ),
    infer=infer,
    reference=reference,
    body=in_double(steps),
    opset=18,
)
