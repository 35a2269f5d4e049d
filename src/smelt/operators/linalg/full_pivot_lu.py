"""``smelt.FullPivotLU``: triangular factors whose pivot is the largest remaining element.

The rows and columns of ``a`` [..., m, n], in the orders ``rows`` and ``columns``, are ``L @ U``;
``lu`` holds both, without the ones on the diagonal of L. So the rank of a matrix is the number of
nonzero pivots. Of equal elements the last in row-major order is chosen, as in LAPACK's ``getc2``;
unlike there, a zero pivot is not replaced by a small number but leaves its column unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_matrices, map_matrices
from smelt.operators.linalg.lu import counted, swapped
from smelt.operators.linalg.matrices import (
    column,
    in_double,
    index_grid,
    ints,
    row,
    size,
    smaller,
    total,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``a``, and int32 for each row and each column."""
    shape = check_matrices(inputs[0], "FullPivotLU")
    assert inputs[0] is not None
    dtype, integer = inputs[0].dtype, ir.DataType.INT32
    if shape is None:
        return Result(dtype, None), Result(integer, None), Result(integer, None)
    *batch, rows, columns = shape.dims
    orders = (Result(integer, ir.Shape([*batch, count])) for count in (rows, columns))
    return Result(dtype, shape), *orders


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the factors and both orders, computed pivot by pivot for each matrix."""
    (a,) = present(inputs)
    rows, columns = a.shape[-2:]
    shapes = (rows, columns), (rows,), (columns,)
    return map_matrices(
        factor, shapes=shapes, dtypes=(a.dtype, np.int32, np.int32), arrays=(a,), ranks=(2,)
    )


def factor(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the factors and the orders of rows and columns of one matrix.

    A NaN is chosen as pivot last.
    """
    lu, rows, columns = a.copy(), np.arange(a.shape[0]), np.arange(a.shape[1])
    for k in range(min(lu.shape)):
        remaining = np.abs(lu[k:, k:])
        remaining[np.isnan(remaining)] = -1
        last_largest = remaining.size - 1 - int(np.argmax(remaining.reshape(-1)[::-1]))
        row, column = divmod(last_largest, remaining.shape[1])
        i, j = k + row, k + column
        lu[[k, i]], rows[[k, i]] = lu[[i, k]], rows[[i, k]]
        lu[:, [k, j]], columns[[k, j]] = lu[:, [j, k]], columns[[j, k]]
        if lu[k, k] != 0:
            lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, rows, columns


def steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the packed factors, and the orders of rows and columns.

    Step k swaps the largest remaining element to position (k, k), and eliminates column k below it.
    """
    row_index, column_index = index_grid(m, a)
    height, width = size(m, a, -2), size(m, a, -1)
    count = m.op("Unsqueeze", height * width, ints(m, 0))
    flat_shape = m.op("Concat", m.op("Shape", a, end=-2), count, axis=0)

    def step(k: Tensor, a: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, ...]:
        """Swap the largest remaining element to position ``k``, and eliminate below it."""
        sizes = m.where(m.op("IsNaN", a), -0.5, m.abs(a))
        remaining = m.op(
            "Reshape",
            m.where((row_index >= k) & (column_index >= k), sizes, -1.0),
            flat_shape,
            allowzero=1,
        )
        flat_index = m.op("ArgMax", remaining, axis=-1, keepdims=1, select_last_index=1)
        pivot_row = flat_index / width
        pivot_column = flat_index - pivot_row * width
        chosen = m.equal(row_index, m.op("Unsqueeze", pivot_row, ints(m, -1)))
        row_of_pivot = total(m, m.where(chosen, a, 0.0), -2)
        a = m.where(m.equal(row_index, k), row_of_pivot, m.where(chosen, row(m, a, k), a))
        chosen = m.equal(column_index, m.op("Unsqueeze", pivot_column, ints(m, -1)))
        column_of_pivot = total(m, m.where(chosen, a, 0.0), -1)
        a = m.where(m.equal(column_index, k), column_of_pivot, m.where(chosen, column(m, a, k), a))
        pivot_line, pivot = row(m, a, k), column(m, row(m, a, k), k)
        below = column(m, a, k) / m.where(m.equal(pivot, 0.0), 1.0, pivot)
        a = m.where((row_index > k) & (column_index > k), a - below * pivot_line, a)
        a = m.where((row_index > k) & m.equal(column_index, k), below, a)
        return a, swapped(m, rows, k, pivot_row), swapped(m, columns, k, pivot_column)

    orders = counted(m, a, height), counted(m, a, width)
    return m.repeat(smaller(m, height, width), step, (a, *orders))


OPERATOR = Operator(
    domain="smelt",
    name="FullPivotLU",
    summary="Triangular factors of matrices with full pivoting",
    inputs=("a",),
    outputs=("lu", "rows", "columns"),
    infer=infer,
    reference=reference,
    body=in_double(steps),
    opset=18,
)
