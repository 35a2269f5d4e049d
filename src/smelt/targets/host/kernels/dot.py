"""DotGeneral: ``np.matmul`` on strided views, which uses BLAS for floats; loops for semirings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.operators.dot_general import accumulator
from smelt.operators.semiring import SEMIRINGS, Semiring, semiring_of
from smelt.program.dot_dims import DotDims
from smelt.targets.host.kernels.kernel import Array, Call, Shaped, Step, kernel

FIRST_INEXACT = 2**53
"""Doubles represent all whole numbers up to this one."""


@dataclass(frozen=True)
class Operand:
    """How an operand becomes matrices ``[batch..., rows, columns]``: as a view or a copy.

    ``order`` is the permutation that puts its batch dims first, then the dims of rows, then those
    of columns. ``shape`` and ``dtype`` are those of the matrices.
    """

    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    copied: bool

    def view(self, array: Array) -> Array:
        """Return ``array`` as matrices, for an operand that needs no copy.

        It is a view. Only a state of a loop may have strides that force ``reshape`` to copy it.
        """
        return array.transpose(self.order).reshape(self.shape)

    def copy(self, array: Array, to: Array) -> Array:
        """Copy ``array`` into ``to``, which has this shape and dtype."""
        transposed = array.transpose(self.order)
        np.copyto(to.reshape(transposed.shape), transposed, casting="unsafe")
        return to


@kernel("DotGeneral")
def dot_general(call: Call) -> Step:
    """Return the step of a DotGeneral.

    It first copies operands whose strides BLAS cannot read to scratch space.
    """
    dims = call.attributes["dims"]
    assert isinstance(dims, DotDims)
    lhs, rhs, out = call.input(0), call.input(1), call.outputs[0]
    kinds = [ir.DataType.from_numpy(array.dtype) for array in (lhs, rhs)]
    sum_type = accumulator(kinds, ir.DataType.from_numpy(out.dtype)).numpy()
    left_free, right_free = dims.lhs_free(lhs.ndim), dims.rhs_free(rhs.ndim)
    batch_rank = len(dims.lhs_batch)
    left = _operand(lhs, batch_rank, (dims.lhs_batch, left_free, dims.lhs_contracting), sum_type)
    right = _operand(rhs, batch_rank, (dims.rhs_batch, dims.rhs_contracting, right_free), sum_type)
    shape = (*left.shape[:-1], right.shape[-1])
    scratch: list[Shaped] = [
        (operand.shape, operand.dtype) for operand in (left, right) if operand.copied
    ]
    if out.dtype != sum_type:
        scratch.append((shape, np.dtype(sum_type)))
    semiring = semiring_of(call.text("semiring"))
    multiply: Callable[[Array, Array, Array], object] = np.matmul
    if np.dtype(sum_type).kind in "iu":
        multiply = _integers
    if semiring != SEMIRINGS["sum_product"]:
        multiply = _semiring_product(semiring, np.dtype(sum_type))

    def run(x: Array, y: Array, target: Array, *buffers: Array) -> None:
        """Write the product of ``x`` and ``y`` to ``target``."""
        free_buffers = iter(buffers)
        left_matrix = left.copy(x, next(free_buffers)) if left.copied else left.view(x)
        right_matrix = right.copy(y, next(free_buffers)) if right.copied else right.view(y)
        result = (
            target.reshape(shape, copy=False) if target.dtype == sum_type else next(free_buffers)
        )
        multiply(left_matrix, right_matrix, result)
        if target.dtype != sum_type:
            np.copyto(target, result.reshape(target.shape), casting="unsafe")

    return Step(run, scratch=scratch)


def _operand(
    array: Array, batch_rank: int, groups: tuple[tuple[int, ...], ...], dtype: np.dtype
) -> Operand:
    """Return how ``array`` becomes a stack of matrices in ``dtype``.

    ``groups`` are the batch dims, the dims of rows and the dims of columns. A copy is needed for
    another dtype, for dims that cannot merge, and for strides that BLAS cannot read.
    """
    order = tuple(dim for group in groups for dim in group)
    sizes = [tuple(array.shape[dim] for dim in group) for group in groups]
    shape = (*sizes[0], prod(sizes[1]), prod(sizes[2]))
    copied = array.dtype != dtype
    if not copied:
        try:
            copied = not _is_blas_ready(array.transpose(order).reshape(shape, copy=False))
        except ValueError:  # its dims cannot merge without a copy
            copied = True
    return Operand(order, shape, np.dtype(dtype), copied)


def _is_blas_ready(matrix: Array) -> bool:
    """True if BLAS can read ``matrix`` as it is: its rows or its columns are dense.

    For other floats, ``np.matmul`` uses slow loops of its own. BLAS multiplies only floats, so
    other types need no dense rows.
    """
    rows, columns = matrix.shape[-2:]
    row_stride, column_stride = (stride // matrix.itemsize for stride in matrix.strides[-2:])
    if matrix.dtype.kind != "f" or 0 in matrix.shape:
        return True
    by_rows = (column_stride == 1 or columns == 1) and (row_stride >= columns or rows == 1)
    by_columns = (row_stride == 1 or rows == 1) and (column_stride >= rows or columns == 1)
    return bool(by_rows or by_columns)


def _semiring_product(semiring: Semiring, dtype: np.dtype) -> Callable[[Array, Array, Array], None]:
    """Return a product over ``semiring``, computed row by row."""
    zero = semiring.zero_in(dtype)[()]
    if semiring == SEMIRINGS["or_and"]:
        return _any_of_all

    def multiply(a: Array, b: Array, out: Array) -> None:
        """Write the product over the semiring to ``out``."""
        if a.shape[-1] == 0:
            out[...] = zero
            return
        for index in np.ndindex(*out.shape[:-1]):
            terms = semiring.combine(a[index][:, None], b[index[:-1]])
            out[index] = semiring.sum(terms, (0,))

    return multiply


def _integers(a: Array, b: Array, out: Array) -> None:
    """Write the integer product of ``a`` and ``b`` to ``out``.

    BLAS computes it in doubles if every sum is below 2**53, which is exact. Otherwise NumPy
    computes it in integers, which is slower.
    """
    if a.size and b.size and a.shape[-1] * _largest(a) * _largest(b) < FIRST_INEXACT:
        products = np.matmul(a.astype(np.float64), b.astype(np.float64))
        np.copyto(out, products.astype(np.int64), casting="unsafe")  # wraps as integer sums do
    else:
        np.matmul(a, b, out)


def _largest(array: Array) -> int:
    """Return the largest absolute value of integers."""
    return max(int(array.max()), -int(array.min()))


def _any_of_all(a: Array, b: Array, out: Array) -> None:
    """Write the product of booleans over or and and, ``any(a[i, k] and b[k, j])``, to ``out``.

    BLAS computes it as a float product, which is above 0 if any pair is true.
    """
    np.greater(np.matmul(a.astype(np.float32), b.astype(np.float32)), 0, out=out)
