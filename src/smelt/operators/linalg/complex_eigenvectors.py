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
"""Assumed difference of equal values, relative to the largest element."""

HUGE = 1e100
"""Vectors of defective matrices grow beyond this, and are scaled."""

Pair = tuple[Tensor, Tensor]


class Pairs(NamedTuple):
    """Rows that describe the values of a real matrix.

    ``is_real``: the value is real. ``negative``: it is the first of a pair whose block has a
    negative number above the diagonal.
    """

    is_real: Tensor
    negative: Tensor


def schur_steps(
    m: Nodes, attributes: Attributes, re: Tensor, im: Tensor, precision: float
) -> tuple[Tensor, ...]:
    """Build the parts of the triangular form, then of the vectors."""
    given = batched(m, re), batched(m, im)
    form, balance, scale = schur_form(m, *given, precision, scaling=False)
    matrix = [part * scale for part in _parts(m, form.matrix)]
    basis = _parts(m, transposed(m, form.rows))
    vectors = [balance.restored(m, part, left=False) * (scale / scale) for part in basis]
    return tuple(as_given(m, inner(m, part, -2, -1), re) for part in (*matrix, *vectors))


def complex_eig_steps(
    m: Nodes, attributes: Attributes, re: Tensor, im: Tensor, precision: float
) -> tuple[Tensor, ...]:
    """Build the parts of the values, then of the left and of the right vectors."""
    given = batched(m, re), batched(m, im)
    form, balance, scale = schur_form(m, *given, precision, scaling=True)
    basis = _parts(m, transposed(m, form.rows))
    values, left, right = of_triangular(m, _parts(m, form.matrix), basis, balance, scale)
    rows = [m.op("Squeeze", inner(m, part, -1), ints(m, -2)) for part in values]
    vectors = [inner(m, part, -2, -1) for part in (*left, *right)]
    return tuple(as_given(m, part, re) for part in (*rows, *vectors))


def of_triangular(
    m: Nodes,
    matrix: Pair,
    basis: Pair,
    balance: Balanced,
    scale: Tensor,
    pairs: Pairs | None = None,
) -> tuple[Pair, Pair, Pair]:
    """Build eigenvalues as rows, then left and right eigenvectors as columns.

    The matrix is ``basis matrix basis^H`` times ``scale``, before balancing; ``matrix`` is
    triangular, with a last row and column of zeros. As in LAPACK for real matrices, vectors of real
    values are only scaled, and the largest element of others may be negative.
    """
    r, c = index_grid(m, matrix[0])
    diagonal = [_down(m, m.where(m.equal(r, c), part, 0.0)) for part in matrix]
    is_real = pairs and pairs.is_real
    found = _times(m, basis, _triangular_vectors(m, matrix, is_real))
    right = _unit(m, [balance.restored(m, each, left=False) for each in found], scale, is_real)
    # Left vectors are those of the adjoint, which is triangular with both orders reversed.
    re, im = (_turned(m, transposed(m, part)) for part in matrix)
    backwards = None if is_real is None else _backwards(m, is_real)
    reversed_ = _triangular_vectors(m, (re, -im), backwards)
    found = _times(m, basis, (_turned(m, reversed_[0]), _turned(m, reversed_[1])))
    of_left = [balance.restored(m, each, left=True) for each in found]
    if pairs is not None:
        of_left = [m.where(pairs.negative, -each, each) for each in of_left]
    left = _unit(m, of_left, scale, is_real)
    return (diagonal[0] * scale, diagonal[1] * scale), left, right


def _triangular_vectors(m: Nodes, matrix: Pair, is_real: Tensor | None) -> Pair:
    """Build eigenvectors of triangular matrices, as columns with 1 on the diagonal.

    Rows are computed from the last up, for all values at once. Equal values are treated as slightly
    different, as in LAPACK. If ``is_real``, a row, marks a value, it is real, and so are the
    vector's elements outside of pairs, whatever rounding leaves.
    """
    r, c = index_grid(m, matrix[0])
    count = size(m, matrix[0], -1)
    values = [_down(m, m.where(m.equal(r, c), part, 0.0)) for part in matrix]
    one = matrix[0] * 0.0 + m.where(m.equal(r, c), 1.0, 0.0)
    length = m.op(
        "Max", *(m.op("ReduceMax", m.abs(p), ints(m, -2, -1), keepdims=1) for p in matrix)
    )
    least = m.where(length > 0.0, length, 1.0) * LEAST

    def step(turn: Tensor, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
        """Compute the row of the vectors that is ``turn`` rows above the last."""
        i = count - 1 - turn
        above = [m.where(c > i, row(m, part, i), 0.0) for part in matrix]
        total = _times(m, (above[0], above[1]), (re, im))
        place = m.op("Unsqueeze", i, ints(m, 0))
        own = [m.op("Gather", part, place, axis=-1) for part in values]
        x, y = (of_all - one_value for of_all, one_value in zip(values, own, strict=True))
        near = m.abs(x) + m.abs(y) < least
        x, y = m.where(near, -least, x), m.where(near, 0.0, y)
        square = x * x + y * y
        if is_real is not None:
            own_is_real = m.op("Gather", is_real, place, axis=-1)
            total = total[0], m.where(is_real & own_is_real, 0.0, total[1])
        new = (total[0] * x + total[1] * y) / square, (total[1] * x - total[0] * y) / square
        here = m.equal(r, i) & (c > i)
        re, im = (m.where(here, new, old) for new, old in zip(new, (re, im), strict=True))
        largest = m.op(
            "Max", *(m.op("ReduceMax", m.abs(p), ints(m, -2), keepdims=1) for p in (re, im))
        )
        divisor = m.where(largest > HUGE, largest, 1.0)
        return re / divisor, im / divisor

    re, im = m.repeat(count, step, (one, one * 0.0))
    return re, im


def _unit(m: Nodes, vectors: Sequence[Tensor], scale: Tensor, kept: Tensor | None) -> Pair:
    """Scale columns to length 1 with a real largest element; NaN where ``scale`` is.

    Columns marked in ``kept`` are only scaled, and others rotated by less than a right angle, so
    their largest element may be negative.
    """
    re, im = vectors
    largest = m.op("ReduceMax", m.op("Max", m.abs(re), m.abs(im)), ints(m, -2), keepdims=1)
    re, im = re / largest, im / largest
    squares = re * re + im * im
    length = m.sqrt(m.op("ReduceSum", squares, ints(m, -2), keepdims=1)) * (scale / scale)
    top = m.op("ArgMax", squares, axis=-2, keepdims=1)
    x, y = (m.op("GatherElements", part, top, axis=-2) for part in (re, im))
    size_of_top = m.sqrt(x * x + y * y)
    x, y = x / size_of_top, y / size_of_top
    if kept is not None:
        back = x < 0.0
        x, y = m.where(kept, 1.0, m.where(back, -x, x)), m.where(kept, 0.0, m.where(back, -y, y))
    x, y = x / length, y / length
    turned = re * x + im * y, im * x - re * y
    return turned[0], m.where(m.equal(index_grid(m, re)[0], top), turned[1] * 0.0, turned[1])


def _times(m: Nodes, a: Pair, b: Pair) -> Pair:
    re = product(m, a[0], b[0]) - product(m, a[1], b[1])
    return re, product(m, a[0], b[1]) + product(m, a[1], b[0])


def _down(m: Nodes, a: Tensor) -> Tensor:
    """Sum over the rows."""
    return m.op("ReduceSum", a, ints(m, -2), keepdims=1)


def _turned(m: Nodes, a: Tensor) -> Tensor:
    """Reverse the order of rows and columns."""
    back = ints(m, -1, -1)
    return m.op("Slice", a, back, ints(m, -LAST, -LAST), ints(m, -2, -1), back)


def _backwards(m: Nodes, row: Tensor) -> Tensor:
    """Reverse a row."""
    return m.op("Slice", row, ints(m, -1), ints(m, -LAST), ints(m, -1), ints(m, -1))


def _parts(m: Nodes, a: Tensor) -> Pair:
    """Return the parts of complex matrices ``[batch, 2, n, n]``."""
    re, im = m.ops("Split", a, outputs=2, axis=1, num_outputs=2)
    return m.op("Squeeze", re, ints(m, 1)), m.op("Squeeze", im, ints(m, 1))


def inner(m: Nodes, a: Tensor, *axes: int) -> Tensor:
    """Return ``a`` without the last row or column along ``axes``."""
    starts, ends = ints(m, *[0] * len(axes)), ints(m, *[-1] * len(axes))
    return m.op("Slice", a, starts, ends, ints(m, *axes))


def batched(m: Nodes, a: Tensor) -> Tensor:
    """Return ``a`` with a batch dim, of size 1 for a matrix."""
    return m.op("Unsqueeze", a, ints(m, 0)) if _has_no_batch(a) else a


def as_given(m: Nodes, result: Tensor, given: Tensor) -> Tensor:
    """Return ``result`` without the batch dim that ``batched`` added to ``given``."""
    return m.op("Squeeze", result, ints(m, 0)) if _has_no_batch(given) else result


def _has_no_batch(a: Tensor) -> bool:
    assert a.value.shape is not None
    return len(a.value.shape) == 2
