"""Rows, columns and masks of stacks of matrices, for bodies that work column by column.

A body does not know the sizes of its matrices. It changes parts of them by masks over the whole
matrix. So a step costs as much as the update of a whole matrix, which each step needs anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attributes, Body
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import REAL

Steps = Callable[..., Sequence[Tensor]]


def in_double(steps: Steps, *ranks: int) -> Body:
    """Return a body that computes ``steps(m, attributes, *matrices)`` in double precision.

    ``ranks`` are the ranks of one array of each input, by default 2. Floats are returned in the
    dtype of the first input, integers as int32. ``steps`` sees all batch dims as one dim, with one
    additional array of zeros: ONNX Runtime neither multiplies nor reduces empty batches.
    """

    def body(
        b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
    ) -> tuple[ir.Value, ...]:
        """Build ``steps`` on the inputs as doubles, with one batch axis."""
        values = present(inputs)
        dtype, m = values[0].dtype, Nodes(b)
        assert dtype is not None
        double = ir.DataType.DOUBLE
        tensors = [
            m.tensor(_cast(b, value, {dtype: double} if dtype in REAL else {})) for value in values
        ]
        array_ranks = ranks or (2,) * len(tensors)
        first = tensors[0].value.shape
        assert first is not None
        batch = (
            m.op("Shape", tensors[0], end=-array_ranks[0]) if len(first) > array_ranks[0] else None
        )
        if batch is not None:
            pairs = zip(tensors, array_ranks, strict=True)
            tensors = [_with_extra_matrix(m, tensor, batch, rank) for tensor, rank in pairs]
        results = steps(m, attributes, *tensors)
        if batch is not None:
            results = [_without_extra_matrix(m, result, batch) for result in results]
        result_types = {ir.DataType.DOUBLE: dtype, ir.DataType.INT64: ir.DataType.INT32}
        return tuple(_cast(b, result.value, result_types) for result in results)

    return body


def _cast(b: Builder, value: ir.Value, kinds: dict[ir.DataType, ir.DataType]) -> ir.Value:
    """Build ``value`` cast to the type that ``kinds`` has for its own; itself without an entry."""
    assert value.dtype is not None
    to = kinds.get(value.dtype, value.dtype)
    return value if to == value.dtype else b.op("Cast", value, to=int(to))


def _with_extra_matrix(m: Nodes, a: Tensor, batch: Tensor, rank: int) -> Tensor:
    """Return ``a`` with its batch dims merged into one, and an array of zeros appended."""
    count = m.op("ReduceProd", batch, keepdims=1)
    sizes = m.op("Concat", count, m.op("Shape", a, start=-rank), axis=0)
    flat = m.op("Reshape", a, sizes, allowzero=1)
    return m.op("Pad", flat, ints(m, 0, 1), 0, ints(m, 0))


def _without_extra_matrix(m: Nodes, a: Tensor, batch: Tensor) -> Tensor:
    """Return ``a`` without the last array, with the batch dims restored."""
    without_last = m.op("Slice", a, ints(m, 0), ints(m, -1), ints(m, 0))
    sizes = m.op("Concat", batch, m.op("Shape", a, start=1), axis=0)
    return m.op("Reshape", without_last, sizes, allowzero=1)


def ints(m: Nodes, *numbers: int) -> Tensor:
    """Return a vector of int64."""
    return m.tensor(m.builder.constant(np.asarray(numbers, np.int64)))


def size(m: Nodes, a: Tensor, axis: int) -> Tensor:
    """Return the size of an axis counted from the end, as a rank-0 int64."""
    end = None if axis == -1 else axis + 1
    sizes = m.op("Shape", a, start=axis, end=end)
    return m.op("Squeeze", sizes, ints(m, 0))


def count_to(m: Nodes, end: Tensor) -> Tensor:
    """Return the vector 0, 1, ..., ``end - 1``."""
    return m.op("Range", 0, end, 1)


def index_grid(m: Nodes, a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row indices as a column, and the column indices as a row."""
    rows = m.op("Unsqueeze", count_to(m, size(m, a, -2)), ints(m, 1))
    return rows, m.op("Unsqueeze", count_to(m, size(m, a, -1)), ints(m, 0))


def smaller(m: Nodes, x: Tensor, y: Tensor) -> Tensor:
    """Return the smaller of two integers."""
    return m.op("Min", x, y)


def column(m: Nodes, a: Tensor, k: Tensor) -> Tensor:
    """Return column ``k`` of each matrix, as a matrix of one column."""
    return m.op("Gather", a, m.op("Unsqueeze", k, ints(m, 0)), axis=-1)


def row(m: Nodes, a: Tensor, k: Tensor) -> Tensor:
    """Return row ``k`` of each matrix, as a matrix of one row."""
    return m.op("Gather", a, m.op("Unsqueeze", k, ints(m, 0)), axis=-2)


def total(m: Nodes, a: Tensor, *axes: int) -> Tensor:
    """Return the sum over rows (axis -2), columns (axis -1), or both, with size 1 kept.

    Uses products with ones, because ONNX Runtime does not reduce empty tensors; products over an
    empty dim, which it leaves uninitialized, are masked.
    """
    for axis in axes:
        length = m.op("Unsqueeze", size(m, a, axis), ints(m, 0))
        sizes = [length, ints(m, 1)] if axis == -1 else [ints(m, 1), length]
        assert a.value.dtype is not None
        one = m.tensor(m.constant(1, a.value.dtype))
        ones = m.op("Expand", one, m.op("Concat", *sizes, axis=0))
        summed = product(m, a, ones) if axis == -1 else product(m, ones, a)
        a = m.where(length > 0, summed, 0)
    return a


def largest(m: Nodes, a: Tensor) -> Tensor:
    """Return the largest absolute value of each matrix, 0 for an empty one; as a 1 by 1 matrix."""
    padded = m.op("Pad", m.abs(a), ints(m, 0, 0, 1, 1), 0.0, ints(m, -2, -1))
    return m.op("ReduceMax", padded, ints(m, -2, -1), keepdims=1)


def is_finite(m: Nodes, a: Tensor) -> Tensor:
    """True for matrices whose elements are all finite; runtimes differ in the maximum with NaN."""
    result: Tensor = m.equal(largest(m, m.where(m.abs(a) < math.inf, 0.0, 1.0)), 0.0)
    return result


def transposed(m: Nodes, a: Tensor) -> Tensor:
    """Return each matrix transposed."""
    assert a.value.shape is not None
    rank = len(a.value.shape)
    return m.op("Transpose", a, perm=[*range(rank - 2), rank - 1, rank - 2])


def product(m: Nodes, a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix products."""
    return m.op("MatMul", a, b)


def matrices_of(m: Nodes, a: Tensor, rows: Tensor, columns: Tensor, number: float) -> Tensor:
    """Return matrices of this size filled with ``number``, as many as ``a`` has."""
    sizes = [m.op("Unsqueeze", n, ints(m, 0)) for n in (rows, columns)]
    shape = m.op("Concat", m.op("Shape", a, end=-2), *sizes, axis=0)
    return m.op("Expand", m.tensor(m.constant(number, ir.DataType.DOUBLE)), shape)


def zeros_like(m: Nodes, a: Tensor) -> Tensor:
    """Return zeros in the shape of ``a``."""
    return m.op("Expand", m.tensor(m.constant(0, ir.DataType.DOUBLE)), m.op("Shape", a))
