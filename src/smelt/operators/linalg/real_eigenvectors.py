"""Function body for eigenvalues and eigenvectors of general real matrices.

The real Schur form has a block of two rows for each conjugate pair. A unitary matrix of such blocks
makes the form triangular. Pairs come as exact conjugates, the one above the real axis first, as in
LAPACK.
"""

from __future__ import annotations

from smelt.operators.declare import Attributes
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.complex_eigenvectors import (
    Pair,
    Pairs,
    batched,
    eigenvectors_of_triangular,
    inner,
    with_rank_of,
)
from smelt.operators.linalg.francis_values import Decomposed, bands, from_next, from_previous
from smelt.operators.linalg.matrices import index_grid, ints, product
from smelt.operators.linalg.real_schur_form import real_schur_form


def eig_steps(m: Nodes, attributes: Attributes, a: Tensor, precision: float) -> tuple[Tensor, ...]:
    """Build the parts of the values, then of the left and of the right vectors."""
    decomposed, balance, scale = real_schur_form(m, batched(m, a), precision, scaling=True)
    matrix, basis, imaginary, negative = _triangular(m, decomposed)
    pair_marks = Pairs(m.equal(imaginary, 0.0), negative)
    (re, _), left, right = eigenvectors_of_triangular(m, matrix, basis, balance, scale, pair_marks)
    rows = [m.op("Squeeze", inner(m, part, -1), ints(m, -2)) for part in (re, imaginary * scale)]
    pairs = (_in_pairs(m, pair, imaginary) for pair in (left, right))
    results = *rows, *(inner(m, part, -2, -1) for pair in pairs for part in pair)
    return tuple(with_rank_of(m, part, a) for part in results)


def _triangular(m: Nodes, decomposed: Decomposed) -> tuple[Pair, Pair, Tensor, Tensor]:
    """Build the triangular form, its vectors, the imaginary parts of eigenvalues, and a mask.

    The mask marks the first eigenvalue of a pair whose block has a negative element above the
    diagonal. A block ``[[a, b], [c, a]]`` has the eigenvalues ``a + iw`` and ``a - iw``, where
    ``w`` is the root of ``-bc``. The first has the vector ``(x, is)``: ``x`` and ``s`` are the
    roots of ``|b|`` and ``|c|`` over ``|b| + |c|``, and the smaller has the sign of ``b``. ``(is,
    x)`` is orthogonal to it.

    1. Find ``x``, ``s`` and ``w`` at the second row of each block, and shift them to its first.
    2. Build the unitary matrix u of these vectors, ``real_part`` + i ``imaginary_part``: 1 on the
       diagonal outside of blocks.
    3. Return ``u^H form u``, with exact zeros and eigenvalues, and ``vectors u``.
    """
    form, vectors = decomposed
    row_index, column_index = index_grid(m, form)
    b = bands(m, form, (row_index, column_index))
    above, left = m.abs(b.above), m.abs(b.left)
    is_second = left > 0.0
    sizes = m.where(is_second, above + left, 1.0)
    x = m.where(is_second, m.sqrt(above / sizes), 0.0)
    s = m.where(is_second, m.sqrt(left / sizes), 0.0)
    negative, above_is_larger = b.above < 0.0, above >= left
    x, s = m.where(negative & ~above_is_larger, -x, x), m.where(negative & above_is_larger, -s, s)
    size_of_imaginary = m.where(is_second, m.sqrt(above) * m.sqrt(left), 0.0)
    x_of_first, s_of_first, size_of_first = (from_next(m, row) for row in (x, s, size_of_imaginary))
    is_first = from_next(m, left) > 0.0
    signed_imaginary = size_of_first - size_of_imaginary
    real_part = m.where(
        m.equal(row_index, column_index),
        m.where(is_first, x_of_first, m.where(is_second, x, 1.0)),
        0.0,
    )
    imaginary_part = m.where(
        m.equal(row_index + 1, column_index),
        s,
        m.where(m.equal(row_index, column_index + 1), s_of_first, 0.0),
    )
    form_by_real, form_by_imaginary = product(m, form, real_part), product(m, form, imaginary_part)
    re = product(m, real_part, form_by_real) + product(m, imaginary_part, form_by_imaginary)
    im = product(m, real_part, form_by_imaginary) - product(m, imaginary_part, form_by_real)
    re, im = (
        m.where(row_index <= column_index, re, 0.0),
        m.where(
            row_index < column_index,
            im,
            m.where(m.equal(row_index, column_index), signed_imaginary, 0.0),
        ),
    )
    re = m.where(m.equal(row_index, column_index), b.diagonal, re)
    basis = product(m, vectors, real_part), product(m, vectors, imaginary_part)
    return (re, im), basis, signed_imaginary, is_first & (from_next(m, b.above) < 0.0)


def _in_pairs(m: Nodes, vectors: Pair, imaginary: Tensor) -> Pair:
    """Make vectors of real eigenvalues real, and the second vector of a pair the first's
    conjugate."""
    re, im = vectors
    from_left = from_previous(m, re), from_previous(m, im)
    re = m.where(imaginary < 0.0, from_left[0], re)
    return re, m.where(imaginary < 0.0, -from_left[1], m.where(imaginary > 0.0, im, im * 0.0))
