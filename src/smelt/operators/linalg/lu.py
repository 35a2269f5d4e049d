"""``smelt.LU`` and ``smelt.PivotsToPermutation``: triangular factors with partial pivoting.

``a`` [..., m, n] is row-permuted into ``L @ U``; ``lu`` holds both, without the ones on the
diagonal of L. Row k was swapped with row ``pivots[k]``; ``permutation`` combines all swaps. A zero
pivot leaves its column unchanged, as in LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import (
    Arguments,
    Attribute,
    Attributes,
    Computed,
    Operator,
    Result,
    int_of,
)
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_matrices, map_matrices, smaller_dim
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


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``a``, and int32 for each pivot and each row."""
    shape = check_matrices(inputs[0], "LU")
    assert inputs[0] is not None
    dtype, integer = inputs[0].dtype, ir.DataType.INT32
    if shape is None:
        return Result(dtype, None), Result(integer, None), Result(integer, None)
    *batch, rows, columns = shape.dims
    pivots = ir.Shape([*batch, smaller_dim(rows, columns)])
    return Result(dtype, shape), Result(integer, pivots), Result(integer, ir.Shape([*batch, rows]))


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return packed factors, pivots and permutation, computed column by column for each matrix."""
    (a,) = present(inputs)
    rows, columns = a.shape[-2:]
    shapes = (rows, columns), (min(rows, columns),), (rows,)
    return map_matrices(
        _factor, shapes=shapes, dtypes=(a.dtype, np.int32, np.int32), arrays=(a,), ranks=(2,)
    )


def _factor(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the factors, pivots and permutation of one matrix."""
    lu = a.copy()
    count = min(lu.shape)
    pivots = np.zeros(count, np.int32)
    for k in range(count):
        pivot = k + first_greatest(np.abs(lu[k:, k]))
        pivots[k] = pivot
        lu[[k, pivot]] = lu[[pivot, k]]
        if lu[k, k] != 0:
            lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots, permutation_of(pivots, a.shape[0])


def first_greatest(sizes: np.ndarray) -> int:
    """Return the row of the pivot as LAPACK does: a NaN is greatest only in the first row."""
    return 0 if np.isnan(sizes[0]) else int(np.nanargmax(sizes))


def pivot_row(m: Nodes, row_index: Tensor, k: Tensor, sizes: Tensor) -> Tensor:
    """Build the index of the pivot row: ``first_greatest`` of the ``sizes`` from row ``k`` on."""
    return m.op("ArgMax", greatest_first(m, row_index, k, sizes), axis=-2, keepdims=1)


def greatest_first(m: Nodes, places: Tensor, k: Tensor, sizes: Tensor) -> Tensor:
    """Return ``sizes`` changed so that ArgMax finds the pivot that ``first_greatest`` chooses.

    Places before ``k`` become -1. NaN becomes infinity at ``k`` and 0 after it, because runtimes
    differ in how ArgMax compares NaN.
    """
    of_nan = m.where(m.equal(places, k), np.inf, 0.0)
    without_nan = m.where(m.op("IsNaN", sizes), of_nan, sizes)
    comparable: Tensor = m.where(places >= k, without_nan, -1.0)
    return comparable


def permutation_of(pivots: np.ndarray, count: int) -> np.ndarray:
    """Return the permutation of all swaps of rows k and ``pivots[k]``, in order."""
    permutation = np.arange(count)
    for k, pivot in enumerate(pivots):
        permutation[[k, pivot]] = permutation[[pivot, k]]
    return permutation


def steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the packed factors, the pivots and the permutation.

    Step k swaps the pivot row to row k and eliminates column k below it:

        below = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= below * a[k, k + 1 :]
    """
    row_index, column_index = index_grid(m, a)
    rows = size(m, a, -2)
    count = smaller(m, rows, size(m, a, -1))
    permutation = counted(m, a, rows)
    pivots = counted(m, a, count)
    places_of_pivots = count_to(m, count)

    def step(k: Tensor, a: Tensor, pivots: Tensor, permutation: Tensor) -> tuple[Tensor, ...]:
        """Swap the pivot row to row ``k``, and eliminate column ``k`` below it."""
        pivot = pivot_row(m, row_index, k, m.abs(column(m, a, k)))
        is_pivot = m.equal(row_index, pivot)
        row_of_pivot = total(m, m.where(is_pivot, a, 0.0), -2)
        a = m.where(m.equal(row_index, k), row_of_pivot, m.where(is_pivot, row(m, a, k), a))
        pivot_value = column(m, row_of_pivot, k)
        below = column(m, a, k) / m.where(m.equal(pivot_value, 0.0), 1.0, pivot_value)
        a = m.where((row_index > k) & (column_index > k), a - below * row_of_pivot, a)
        a = m.where((row_index > k) & m.equal(column_index, k), below, a)
        pivot_number = m.op("Squeeze", pivot, ints(m, -1))
        pivots = m.where(m.equal(places_of_pivots, k), pivot_number, pivots)
        return a, pivots, swapped(m, permutation, k, pivot_number)

    return m.repeat(count, step, (a, pivots, permutation))


def counted(m: Nodes, a: Tensor, count: Tensor) -> Tensor:
    """Build 0, 1, 2, ..., ``count - 1`` for each matrix of ``a``."""
    shape = m.op("Concat", m.op("Shape", a, end=-2), m.op("Unsqueeze", count, ints(m, 0)), axis=0)
    return m.op("Expand", count_to(m, count), shape)


def swapped(m: Nodes, permutation: Tensor, k: Tensor, partner: Tensor) -> Tensor:
    """Return ``permutation`` with its elements at ``k`` and ``partner [..., 1]`` exchanged."""
    index = count_to(m, size(m, permutation, -1))
    first = m.op("Gather", permutation, m.op("Unsqueeze", k, ints(m, 0)), axis=-1)
    second = m.op("GatherElements", permutation, partner, axis=-1)
    swapped = m.where(m.equal(index, partner), first, permutation)
    return m.op("Where", m.equal(index, k), second, swapped)


def infer_permutation(
    inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[Result, ...]:
    """Return int32 of ``permutation_size`` rows for each list of pivots."""
    pivots, count = inputs[0], attributes["permutation_size"]
    if pivots is None or not isinstance(count, int):
        raise ValueError("PivotsToPermutation takes one operand")
    if pivots.dtype not in (None, ir.DataType.INT32):
        raise ValueError("PivotsToPermutation takes int32")
    if pivots.shape is None:
        return (Result(ir.DataType.INT32, None),)
    return (Result(ir.DataType.INT32, ir.Shape([*pivots.shape.dims[:-1], count])),)


def permutation_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the permutation: the swaps applied in order."""
    (pivots,) = inputs
    count = int_of(attributes, "permutation_size")
    assert pivots is not None
    return map_matrices(
        lambda p: (permutation_of(p, count),),
        shapes=((count,),),
        dtypes=(np.int32,),
        arrays=(pivots,),
        ranks=(1,),
    )


def permutation_steps(m: Nodes, attributes: Attributes, pivots: Tensor) -> tuple[Tensor, ...]:
    """Build the permutation by one swap per pivot, in order."""
    pivots_int64 = m.op("Cast", pivots, to=int(ir.DataType.INT64))
    number = int_of(attributes, "permutation_size")
    count = m.tensor(m.constant(number, ir.DataType.INT64))
    as_columns = m.op("Unsqueeze", pivots_int64, ints(m, -1))
    permutation = counted(m, as_columns, count)

    def step(k: Tensor, permutation: Tensor) -> tuple[Tensor, ...]:
        """Swap row ``k`` with row ``pivots[k]``."""
        partner = m.op("Gather", pivots_int64, m.op("Unsqueeze", k, ints(m, 0)), axis=-1)
        return (swapped(m, permutation, k, partner),)

    return m.repeat(size(m, pivots, -1), step, (permutation,))


OPERATORS = (
    Operator(
        domain="smelt",
        name="LU",
        summary="Triangular factors of matrices with partial pivoting",
        inputs=("a",),
        outputs=("lu", "pivots", "permutation"),
        infer=infer,
        reference=reference,
        body=in_double(steps),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="PivotsToPermutation",
        summary="The permutation that a sequence of swaps makes",
        inputs=("pivots",),
        outputs=("permutation",),
        attributes=(Attribute("permutation_size", ir.AttributeType.INT, required=True),),
        infer=infer_permutation,
        reference=permutation_reference,
        body=in_double(permutation_steps, 1),
        opset=18,
    ),
)
