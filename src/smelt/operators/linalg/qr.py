"""``smelt.Geqrf``, ``smelt.Geqp3`` and ``smelt.HouseholderProduct``: orthogonal factors.

``Geqrf`` packs the factors of ``a`` [..., m, n] as LAPACK does: R on and above the diagonal, below
it the vectors ``v`` of reflections ``I - tau v v^T`` whose product is Q. Before reflection k,
``Geqp3`` swaps column k with the later column of the largest norm from row k on; ``permutation``
has the original numbers of the columns in their new order. ``HouseholderProduct`` multiplies the
reflections out to the first columns of Q, as many as ``a`` has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_matrices, map_matrices, smaller_dim
from smelt.operators.linalg.lu import greatest_first
from smelt.operators.linalg.matrices import (
    column,
    count_to,
    in_double,
    index_grid,
    ints,
    largest,
    matrices_of,
    product,
    row,
    size,
    smaller,
    total,
    transposed,
    zeros_like,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the types of the packed factors, of the taus (one per reflection), and of the column
    order (one int32 per column)."""
    shape = check_matrices(inputs[0], "Geqrf")
    assert inputs[0] is not None
    dtype, integer = inputs[0].dtype, ir.DataType.INT32
    if shape is None:
        return Result(dtype, None), Result(dtype, None), Result(integer, None)
    *batch, rows, columns = shape.dims
    taus, order = ir.Shape([*batch, smaller_dim(rows, columns)]), ir.Shape([*batch, columns])
    return Result(dtype, shape), Result(dtype, taus), Result(integer, order)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the packed factors and the taus by LAPACK's ``geqrf``."""
    (a,) = present(inputs)
    rows, columns = a.shape[-2:]

    def factor(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return packed factors and taus of one matrix."""
        packed, taus = np.linalg.qr(matrix, mode="raw")
        return packed.T, taus

    shapes = (rows, columns), (min(rows, columns),)
    return map_matrices(factor, shapes=shapes, dtypes=(a.dtype, a.dtype), arrays=(a,), ranks=(2,))


def pivoting_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the packed factors, the taus and the order of columns (from 0) by LAPACK's
    ``geqp3``."""
    from scipy.linalg.lapack import get_lapack_funcs

    (a,) = present(inputs)
    rows, columns = a.shape[-2:]
    (geqp3,) = get_lapack_funcs(("geqp3",), dtype=a.dtype)

    def factor(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return packed factors, taus and column order of one matrix."""
        if not rows:
            return matrix, np.zeros(0, a.dtype), np.arange(columns)
        packed, order, taus, *_ = geqp3(matrix)
        return packed, taus, order - 1

    shapes = (rows, columns), (min(rows, columns),), (columns,)
    return map_matrices(
        factor, shapes=shapes, dtypes=(a.dtype, a.dtype, np.int32), arrays=(a,), ranks=(2,)
    )


def product_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the first columns of the product, with reflections applied from the last to the
    first."""
    a, taus = present(inputs)

    def multiply(packed: np.ndarray, taus: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the first columns of Q of one matrix."""
        q = np.eye(*packed.shape, dtype=packed.dtype)
        for k in reversed(range(len(taus))):
            vector = np.concatenate([[1], packed[k + 1 :, k]]).astype(packed.dtype)
            q[k:, k:] -= np.outer(taus[k] * vector, vector @ q[k:, k:])
        return (q,)

    return map_matrices(
        multiply, shapes=(a.shape[-2:],), dtypes=(a.dtype,), arrays=(a, taus), ranks=(2, 1)
    )


def steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the packed factors and the taus, reflection by reflection."""
    return factor(m, a, pivoting=False)[:2]


def pivoting_steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the packed factors, the taus and the column order; the longest column comes first."""
    return factor(m, a, pivoting=True)


def factor(m: Nodes, a: Tensor, *, pivoting: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Build the packed factors, the taus, and the order of columns.

    Step k reflects column k so that it is 0 below row k, and applies the reflection to later
    columns:

        a = a - tau * v @ (v^T @ a)
    """
    row_index, column_index = index_grid(m, a)
    count = smaller(m, size(m, a, -2), size(m, a, -1))
    single = ints_scalar(m, 1)
    taus = m.op("Squeeze", matrices_of(m, a, single, count, 0.0), ints(m, -2))
    zeros = matrices_of(m, a, single, size(m, a, -1), 0.0)
    order = m.op("Cast", zeros, to=int(ir.DataType.INT64)) + column_index
    indexes = count_to(m, count)

    def step(k: Tensor, a: Tensor, taus: Tensor, order: Tensor) -> tuple[Tensor, ...]:
        """Clear column ``k`` below the diagonal by a reflection."""
        if pivoting:
            a, order = _longest_first(m, a, order, row_index, column_index, k)
        x = column(m, a, k)
        vector, tau, beta = reflection(m, m.where(row_index >= k, x, 0.0), row_index, k)
        update = tau * vector * product(m, transposed(m, vector), a)
        below = m.where(
            row_index >= k, a - update, a
        )  # a NaN in the reflection does not spread to rows above
        a = m.where(column_index > k, below, a)
        reflected_column = m.where(m.equal(row_index, k), beta, m.where(row_index > k, vector, x))
        a = m.where(m.equal(column_index, k), reflected_column, a)
        tau_of_column = m.op("Squeeze", tau, ints(m, -1))
        return a, m.where(m.equal(indexes, k), tau_of_column, taus), order

    a, taus, order = m.repeat(count, step, (a, taus, order))
    return a, taus, m.op("Squeeze", order, ints(m, -2))


def ints_scalar(m: Nodes, number: int) -> Tensor:
    """Return a rank-0 int64."""
    return m.tensor(m.constant(number, ir.DataType.INT64))


def reflection(m: Nodes, x: Tensor, row_index: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``vector``, ``tau`` and ``beta`` of a reflection, as LAPACK's ``larfg``.

    The reflection maps x, which is 0 above row k, to beta in row k and 0 elsewhere. beta has the
    sign opposite to that of x in row k. An x that is already 0 below row k is unchanged.
    """
    scale = largest(m, x)
    scale = m.where(m.equal(scale, 0.0), 1.0, scale)
    scaled = x / scale
    head = row(m, scaled, k)
    below = m.where(row_index > k, scaled, 0.0)
    is_trivial = m.equal(total(m, below * below, -2), 0.0)
    norm = m.sqrt(total(m, scaled * scaled, -2))
    beta = m.where(head >= 0.0, -norm, norm)
    divisor = m.where(is_trivial, 1.0, head - beta)
    vector = m.where(m.equal(row_index, k), 1.0, m.where(is_trivial, 0.0, below / divisor))
    tau = m.where(is_trivial, 0.0, (beta - head) / m.where(is_trivial, 1.0, beta))
    return vector, tau, m.where(is_trivial, head, beta) * scale


def _longest_first(
    m: Nodes, a: Tensor, order: Tensor, row_index: Tensor, column_index: Tensor, k: Tensor
) -> tuple[Tensor, Tensor]:
    """Exchange column k and the later column with the largest norm from row k on.

    As in LAPACK, a norm that is NaN is largest in column k only.
    """
    scale = largest(m, m.where(m.abs(a) < math.inf, a, 0.0))
    scaled = m.where(row_index >= k, a, 0.0) / m.where(m.equal(scale, 0.0), 1.0, scale)
    norms = greatest_first(m, column_index, k, total(m, scaled * scaled, -2))
    is_longest = m.equal(column_index, m.op("ArgMax", norms, axis=-1, keepdims=1))
    at_k = m.equal(column_index, k)
    column_values = total(m, m.where(is_longest, a, 0.0), -1)
    column_number = total(m, m.where(is_longest, order, 0), -1)
    a = m.where(at_k, column_values, m.where(is_longest, column(m, a, k), a))
    return a, m.where(at_k, column_number, m.where(is_longest, column(m, order, k), order))


def product_steps(m: Nodes, attributes: Attributes, a: Tensor, taus: Tensor) -> tuple[Tensor, ...]:
    """Build the first columns of Q, from the last reflection: ``q -= tau v (v^T q)``."""
    row_index, column_index = index_grid(m, a)
    count = size(m, taus, -1)
    identity = m.where(m.equal(row_index, column_index), 1.0, 0.0)
    q = zeros_like(m, a) + identity
    row_of_taus = m.op("Unsqueeze", taus, ints(m, -2))

    def step(k: Tensor, q: Tensor) -> tuple[Tensor, ...]:
        """Apply reflection ``count - 1 - k`` to the columns that it changes."""
        i = count - 1 - k
        vector = m.where(m.equal(row_index, i), 1.0, m.where(row_index > i, column(m, a, i), 0.0))
        tau = column(m, row_of_taus, i)
        changed = q - tau * vector * product(m, transposed(m, vector), q)
        below = m.where(
            row_index >= i, changed, q
        )  # a NaN in the reflection does not spread to rows above
        return (m.where(column_index >= i, below, q),)

    return m.repeat(count, step, (q,))


def infer_product(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``a``."""
    shape = check_matrices(inputs[0], "HouseholderProduct")
    taus = check_matrices(inputs[1], "HouseholderProduct", rank=1)
    if shape is not None and taus is not None and len(taus) != len(shape) - 1:
        raise ValueError(f"ranks {len(shape)} and {len(taus)} do not fit")
    assert inputs[0] is not None
    return (Result(inputs[0].dtype, shape),)


OPERATORS = (
    Operator(
        domain="smelt",
        name="Geqrf",
        summary="Orthogonal and triangular factor, packed as LAPACK packs them",
        inputs=("a",),
        outputs=("packed", "taus"),
        infer=lambda inputs, attributes: infer(inputs, attributes)[:2],
        reference=reference,
        body=in_double(steps),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="Geqp3",
        summary="Orthogonal and triangular factor with pivoting of columns, packed",
        inputs=("a",),
        outputs=("packed", "taus", "permutation"),
        infer=infer,
        reference=pivoting_reference,
        body=in_double(pivoting_steps),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="HouseholderProduct",
        summary="The first columns of a product of reflections",
        inputs=("a", "taus"),
        outputs=("q",),
        infer=infer_product,
        reference=product_reference,
        body=in_double(product_steps, 2, 1),
        opset=18,
    ),
)
