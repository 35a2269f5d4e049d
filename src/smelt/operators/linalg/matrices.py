"""Rows, columns and masks of stacks of matrices, for bodies that work column by column.

A body never knows the sizes of its matrices. It changes parts of them by masks over all of it, so
a step costs as much as the update of a whole matrix, which it needs anyway.
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
    """The body that computes ``steps(m, attributes, *matrices)`` in double precision.

    ``ranks`` are those of one array of each input, 2 if not given. Floats come back in the dtype
    of the first input, integers as int32. Batches reach ``steps`` as one dim, with one array more:
    ONNX Runtime neither multiplies nor reduces batches of nothing.
    """

    def body(
        b: Builder, given: Sequence[ir.Value | None], attributes: Attributes
    ) -> tuple[ir.Value, ...]:
        values = present(given)
        narrow, m = values[0].dtype, Nodes(b)
        assert narrow is not None
        double = ir.DataType.DOUBLE
        tensors = [
            m.tensor(_cast(b, value, {narrow: double} if narrow in REAL else {}))
            for value in values
        ]
        own = ranks or (2,) * len(tensors)
        first = tensors[0].value.shape
        assert first is not None
        batch = m.op("Shape", tensors[0], end=-own[0]) if len(first) > own[0] else None
        if batch is not None:
            pairs = zip(tensors, own, strict=True)
            tensors = [_one_more(m, tensor, batch, rank) for tensor, rank in pairs]
        results = steps(m, attributes, *tensors)
        if batch is not None:
            results = [_without(m, result, batch) for result in results]
        kinds = {ir.DataType.DOUBLE: narrow, ir.DataType.INT64: ir.DataType.INT32}
        return tuple(_cast(b, result.value, kinds) for result in results)

    return body


def _cast(b: Builder, value: ir.Value, kinds: dict[ir.DataType, ir.DataType]) -> ir.Value:
    assert value.dtype is not None
    to = kinds.get(value.dtype, value.dtype)
    return value if to == value.dtype else b.op("Cast", value, to=int(to))


def _one_more(m: Nodes, a: Tensor, batch: Tensor, rank: int) -> Tensor:
    """The batch as one dim, and an array of zeros after it."""
    count = m.op("ReduceProd", batch, keepdims=1)
    sizes = m.op("Concat", count, m.op("Shape", a, start=-rank), axis=0)
    flat = m.op("Reshape", a, sizes, allowzero=1)
    return m.op("Pad", flat, ints(m, 0, 1), 0, ints(m, 0))


def _without(m: Nodes, a: Tensor, batch: Tensor) -> Tensor:
    """The batch in its own dims again, without the last array."""
    kept = m.op("Slice", a, ints(m, 0), ints(m, -1), ints(m, 0))
    sizes = m.op("Concat", batch, m.op("Shape", a, start=1), axis=0)
    return m.op("Reshape", kept, sizes, allowzero=1)


def ints(m: Nodes, *numbers: int) -> Tensor:
    """A vector of int64."""
    return m.tensor(m.builder.constant(np.asarray(numbers, np.int64)))


def size(m: Nodes, a: Tensor, axis: int) -> Tensor:
    """The size of an axis counted from the end, as a rank-0 int64."""
    sizes = m.op("Shape", a, start=axis, end=axis + 1 or None)
    return m.op("Squeeze", sizes, ints(m, 0))


def count_to(m: Nodes, end: Tensor) -> Tensor:
    """The vector 0, 1, ..., ``end - 1``."""
    return m.op("Range", 0, end, 1)


def index_grid(m: Nodes, a: Tensor) -> tuple[Tensor, Tensor]:
    """The indexes of the rows, as a column, and those of the columns, as a row."""
    rows = m.op("Unsqueeze", count_to(m, size(m, a, -2)), ints(m, 1))
    return rows, m.op("Unsqueeze", count_to(m, size(m, a, -1)), ints(m, 0))


def least(m: Nodes, x: Tensor, y: Tensor) -> Tensor:
    """The smaller of two integers."""
    return m.op("Min", x, y)


def column(m: Nodes, a: Tensor, k: Tensor) -> Tensor:
    """Column ``k`` of each matrix, as a matrix of one column."""
    return m.op("Gather", a, m.op("Unsqueeze", k, ints(m, 0)), axis=-1)


def row(m: Nodes, a: Tensor, k: Tensor) -> Tensor:
    """Row ``k`` of each matrix, as a matrix of one row."""
    return m.op("Gather", a, m.op("Unsqueeze", k, ints(m, 0)), axis=-2)


def total(m: Nodes, a: Tensor, *axes: int) -> Tensor:
    """The sum over the rows, axis -2, or the columns, axis -1, or both; a size 1 is left.

    By products with ones, for ONNX Runtime does not reduce tensors without elements; a product
    over none it leaves unwritten.
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
    """The largest absolute value of each matrix, 0 of an empty one; as a matrix of one element."""
    padded = m.op("Pad", m.abs(a), ints(m, 0, 0, 1, 1), 0.0, ints(m, -2, -1))
    return m.op("ReduceMax", padded, ints(m, -2, -1), keepdims=1)


def is_finite(m: Nodes, a: Tensor) -> Tensor:
    """Of each matrix, whether all elements are; runtimes differ in what the largest of NaN is."""
    found: Tensor = m.equal(largest(m, m.where(m.abs(a) < math.inf, 0.0, 1.0)), 0.0)
    return found


def transposed(m: Nodes, a: Tensor) -> Tensor:
    """Each matrix transposed."""
    assert a.value.shape is not None
    rank = len(a.value.shape)
    return m.op("Transpose", a, perm=[*range(rank - 2), rank - 1, rank - 2])


def product(m: Nodes, a: Tensor, b: Tensor) -> Tensor:
    """The products of matrices."""
    return m.op("MatMul", a, b)


def filled(m: Nodes, a: Tensor, rows: Tensor, columns: Tensor, number: float) -> Tensor:
    """Matrices of one number in this size, as many as ``a`` has."""
    sizes = [m.op("Unsqueeze", n, ints(m, 0)) for n in (rows, columns)]
    shape = m.op("Concat", m.op("Shape", a, end=-2), *sizes, axis=0)
    return m.op("Expand", m.tensor(m.constant(number, ir.DataType.DOUBLE)), shape)


def zeros_like(m: Nodes, a: Tensor) -> Tensor:
    """Zeros in the shape of ``a``."""
    return m.op("Expand", m.tensor(m.constant(0, ir.DataType.DOUBLE)), m.op("Shape", a))
