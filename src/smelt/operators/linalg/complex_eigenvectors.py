"""Function bodies for Schur form, eigenvalues and eigenvectors of complex matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smelt.operators.declare import Attributes
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.balancing import Balanced
from smelt.operators.linalg.complex_schur_form import schur_form
from smelt.operators.linalg.matrices import (
    index_grid,
    ints,
    product,
    row,
    size,
    transposed,
)

LAST = np.iinfo(np.int64).max

LEAST = 2.0**-52
"""The difference by which equal eigenvalues count as different, relative to the largest element."""

HUGE = 1e100
"""Vectors of defective matrices grow beyond this, and are scaled."""

Pair = tuple[Tensor, Tensor]


class Pairs(NamedTuple):
    """Rows ``[batch, 1, n + 1]`` that describe the eigenvalues of a real matrix.

    ``is_real``: the value is real. ``negative``: the value is the first of a conjugate pair, and
    the 2 x 2 block of the pair in the real Schur form has a negative element above its diagonal.
    LAPACK's left vector of such a value has the opposite sign.
    """

    is_real: Tensor
    negative: Tensor


def schur_steps(
    m: Nodes, attributes: Attributes, re: Tensor, im: Tensor, precision: float
) -> tuple[Tensor, ...]:
    """Build real and imaginary part of the triangular form, then of the vectors."""
    batch = batched(m, re), batched(m, im)
    form, balance, scale = schur_form(m, *batch, precision, scaling=False)
    matrix = [part * scale for part in _real_and_imaginary(m, form.matrix)]
    basis = _real_and_imaginary(m, transposed(m, form.rows))
    vectors = [balance.restored(m, part, left=False) * (scale / scale) for part in basis]
    return tuple(with_rank_of(m, inner(m, part, -2, -1), re) for part in (*matrix, *vectors))


def complex_eig_steps(
    m: Nodes, attributes: Attributes, re: Tensor, im: Tensor, precision: float
) -> tuple[Tensor, ...]:
    """Build real and imaginary part of the values, of the left vectors, and of the right
    vectors."""
    batch = batched(m, re), batched(m, im)
    form, balance, scale = schur_form(m, *batch, precision, scaling=True)
    basis = _real_and_imaginary(m, transposed(m, form.rows))
    values, left, right = eigenvectors_of_triangular(
        m, _real_and_imaginary(m, form.matrix), basis, balance, scale
    )
    rows = [m.op("Squeeze", inner(m, part, -1), ints(m, -2)) for part in values]
    vectors = [inner(m, part, -2, -1) for part in (*left, *right)]
    return tuple(with_rank_of(m, part, re) for part in (*rows, *vectors))


def eigenvectors_of_triangular(
    m: Nodes,
    matrix: Pair,
    basis: Pair,
    balance: Balanced,
    scale: Tensor,
    pairs: Pairs | None = None,
) -> tuple[Pair, Pair, Pair]:
    """Build ``(eigenvalues as rows, left eigenvectors, right eigenvectors)``, vectors as columns.

    They are those of A, the operand of Eig: ``balance`` maps A to ``scale * basis @ matrix @
    basis^H``. ``matrix`` is the triangular Schur form. Its last row and column are zeros, which
    ``schur_form`` adds for empty matrices and the callers drop by ``inner``. With ``pairs``, for
    real A, the signs are LAPACK's: vectors of real eigenvalues are only scaled, the largest element
    of other vectors may be negative, and the left vectors marked ``negative`` are negated.
    """
    row_index, column_index = index_grid(m, matrix[0])
    diagonal = [
        _sum_of_rows(m, m.where(m.equal(row_index, column_index), part, 0.0)) for part in matrix
    ]
    is_real = pairs and pairs.is_real
    vectors = _complex_product(m, basis, _triangular_vectors(m, matrix, is_real))
    right = _normalized(
        m, [balance.restored(m, part, left=False) for part in vectors], scale, is_real
    )
    # Left vectors are those of the adjoint, which is triangular with both orders reversed.
    re, im = (_reversed(m, transposed(m, part)) for part in matrix)
    reversed_marks = None if is_real is None else _reversed_row(m, is_real)
    reversed_ = _triangular_vectors(m, (re, -im), reversed_marks)
    vectors = _complex_product(m, basis, (_reversed(m, reversed_[0]), _reversed(m, reversed_[1])))
    left_vectors = [balance.restored(m, part, left=True) for part in vectors]
    if pairs is not None:
        left_vectors = [m.where(pairs.negative, -part, part) for part in left_vectors]
    left = _normalized(m, left_vectors, scale, is_real)
    return (diagonal[0] * scale, diagonal[1] * scale), left, right


def _triangular_vectors(m: Nodes, matrix: Pair, is_real: Tensor | None) -> Pair:
    """Build eigenvectors of triangular matrices, as columns with 1 on the diagonal.

    Rows are computed from the last up, for all eigenvalues at once. Equal eigenvalues are treated
    as slightly different, as in LAPACK. ``is_real``, a row, marks real eigenvalues: elements of
    their vectors are then real, too, except in rows of conjugate pairs. Row i of the vector v of
    the eigenvalue w, with the matrix T, is

        v[i] = (T[i, i+1:] @ v[i+1:]) / (w - T[i, i])
    """
    row_index, column_index = index_grid(m, matrix[0])
    count = size(m, matrix[0], -1)
    values = [
        _sum_of_rows(m, m.where(m.equal(row_index, column_index), part, 0.0)) for part in matrix
    ]
    identity = matrix[0] * 0.0 + m.where(m.equal(row_index, column_index), 1.0, 0.0)
    largest_of_matrix = m.op(
        "Max", *(m.op("ReduceMax", m.abs(p), ints(m, -2, -1), keepdims=1) for p in matrix)
    )
    least_difference = m.where(largest_of_matrix > 0.0, largest_of_matrix, 1.0) * LEAST

    def step(rows_done: Tensor, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
        """Compute the next row up; large vectors are scaled, so that they do not overflow."""
        i = count - 1 - rows_done
        later_elements = [m.where(column_index > i, row(m, part, i), 0.0) for part in matrix]
        total = _complex_product(m, (later_elements[0], later_elements[1]), (re, im))
        place = m.op("Unsqueeze", i, ints(m, 0))
        own_value = [m.op("Gather", part, place, axis=-1) for part in values]
        difference_re, difference_im = (
            of_all - one_value for of_all, one_value in zip(values, own_value, strict=True)
        )
        is_small = m.abs(difference_re) + m.abs(difference_im) < least_difference
        divisor = (
            m.where(is_small, -least_difference, difference_re),
            m.where(is_small, 0.0, difference_im),
        )
        if is_real is not None:
            own_is_real = m.op("Gather", is_real, place, axis=-1)
            total = total[0], m.where(is_real & own_is_real, 0.0, total[1])
        solved = _complex_quotient(total, divisor)
        is_target = m.equal(row_index, i) & (column_index > i)
        re, im = (
            m.where(is_target, part, before) for part, before in zip(solved, (re, im), strict=True)
        )
        largest_of_vector = m.op(
            "Max", *(m.op("ReduceMax", m.abs(p), ints(m, -2), keepdims=1) for p in (re, im))
        )
        scale = m.where(largest_of_vector > HUGE, largest_of_vector, 1.0)
        return re / scale, im / scale

    re, im = m.repeat(count, step, (identity, identity * 0.0))
    return re, im


def _complex_quotient(dividend: Pair, divisor: Pair) -> Pair:
    """Return ``dividend / divisor``, both complex: the product by the conjugate over its square."""
    (re, im), (divisor_re, divisor_im) = dividend, divisor
    square = divisor_re * divisor_re + divisor_im * divisor_im
    return (re * divisor_re + im * divisor_im) / square, (
        im * divisor_re - re * divisor_im
    ) / square


def _normalized(
    m: Nodes, vectors: Sequence[Tensor], scale: Tensor, only_scaled: Tensor | None
) -> Pair:
    """Scale columns to length 1 with a real largest element; NaN where ``scale`` is.

    A column is multiplied by the conjugate of the phase of its largest element x: ``x / |x|``, with
    the parts ``phase_re`` and ``phase_im``. Columns marked in ``only_scaled`` are not rotated. If
    marks are given, other columns are rotated by less than a right angle, so their largest element
    may be negative.
    """
    re, im = vectors
    largest = m.op("ReduceMax", m.op("Max", m.abs(re), m.abs(im)), ints(m, -2), keepdims=1)
    re, im = re / largest, im / largest
    squares = re * re + im * im
    length = m.sqrt(m.op("ReduceSum", squares, ints(m, -2), keepdims=1)) * (scale / scale)
    top_row = m.op("ArgMax", squares, axis=-2, keepdims=1)
    phase_re, phase_im = (m.op("GatherElements", part, top_row, axis=-2) for part in (re, im))
    top_size = m.sqrt(phase_re * phase_re + phase_im * phase_im)
    phase_re, phase_im = phase_re / top_size, phase_im / top_size
    if only_scaled is not None:
        points_back = phase_re < 0.0
        phase_re = m.where(only_scaled, 1.0, m.where(points_back, -phase_re, phase_re))
        phase_im = m.where(only_scaled, 0.0, m.where(points_back, -phase_im, phase_im))
    phase_re, phase_im = phase_re / length, phase_im / length
    rotated = re * phase_re + im * phase_im, im * phase_re - re * phase_im
    return rotated[0], m.where(m.equal(index_grid(m, re)[0], top_row), rotated[1] * 0.0, rotated[1])


def _complex_product(m: Nodes, a: Pair, b: Pair) -> Pair:
    """Return the matrix product of two complex matrices, given by their parts."""
    re = product(m, a[0], b[0]) - product(m, a[1], b[1])
    return re, product(m, a[0], b[1]) + product(m, a[1], b[0])


def _sum_of_rows(m: Nodes, a: Tensor) -> Tensor:
    """Return the sum of each column, as one row."""
    return m.op("ReduceSum", a, ints(m, -2), keepdims=1)


def _reversed(m: Nodes, a: Tensor) -> Tensor:
    """Return ``a`` with the order of rows and columns reversed."""
    back = ints(m, -1, -1)
    return m.op("Slice", a, back, ints(m, -LAST, -LAST), ints(m, -2, -1), back)


def _reversed_row(m: Nodes, row: Tensor) -> Tensor:
    """Return ``row`` in reverse order."""
    return m.op("Slice", row, ints(m, -1), ints(m, -LAST), ints(m, -1), ints(m, -1))


def _real_and_imaginary(m: Nodes, a: Tensor) -> Pair:
    """Return the real and imaginary parts of matrices ``[batch, 2, n, n]``."""
    re, im = m.ops("Split", a, outputs=2, axis=1, num_outputs=2)
    return m.op("Squeeze", re, ints(m, 1)), m.op("Squeeze", im, ints(m, 1))


def inner(m: Nodes, a: Tensor, *axes: int) -> Tensor:
    """Return ``a`` without the last row or column along ``axes``."""
    starts, ends = ints(m, *[0] * len(axes)), ints(m, *[-1] * len(axes))
    return m.op("Slice", a, starts, ends, ints(m, *axes))


def batched(m: Nodes, a: Tensor) -> Tensor:
    """Return ``a`` with a batch dim, of size 1 for a matrix."""
    return m.op("Unsqueeze", a, ints(m, 0)) if _has_no_batch(a) else a


def with_rank_of(m: Nodes, result: Tensor, operand: Tensor) -> Tensor:
    """Return ``result`` without the batch dim that ``batched`` added to ``operand``."""
    return m.op("Squeeze", result, ints(m, 0)) if _has_no_batch(operand) else result


def _has_no_batch(a: Tensor) -> bool:
    """True if ``a`` is a single matrix."""
    assert a.value.shape is not None
    return len(a.value.shape) == 2
