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
from smelt.operators.linalg.francis_steps import bands, before, behind
from smelt.operators.linalg.francis_values import Decomposed
from smelt.operators.linalg.matrices import index_grid, ints, product
from smelt.operators.linalg.real_schur_form import real_schur_form


def eig_steps(m: Nodes, attributes: Attributes, a: Tensor, precision: float) -> tuple[Tensor, ...]:
    """Build the parts of the values, then of the left and of the right vectors."""
    decomposed, balance, scale = real_schur_form(m, batched(m, a), precision, scaling=True)
    matrix, basis, half, negative = _triangular(m, decomposed)
    pair_marks = Pairs(m.equal(half, 0.0), negative)
    (re, _), left, right = eigenvectors_of_triangular(m, matrix, basis, balance, scale, pair_marks)
    rows = [m.op("Squeeze", inner(m, part, -1), ints(m, -2)) for part in (re, half * scale)]
    pairs = (_in_pairs(m, pair, half) for pair in (left, right))
    results = *rows, *(inner(m, part, -2, -1) for pair in pairs for part in pair)
    return tuple(with_rank_of(m, part, a) for part in results)


def _triangular(m: Nodes, decomposed: Decomposed) -> tuple[Pair, Pair, Tensor, Tensor]:
    """Build the triangular form, its vectors, the imaginary parts of eigenvalues, and a mask.

    The mask marks the first eigenvalue of a pair whose block has a negative element above the
    diagonal.

    A block ``[[a, b], [c, a]]`` has the eigenvalues ``a + iw`` and ``a - iw``, where ``w`` is the
    root of ``-bc``. The first has the vector ``(x, is)``: ``x`` and ``s`` are the roots of ``|b|``
    and ``|c|`` over ``|b| + |c|``, and the smaller has the sign of ``b``. ``(is, x)`` is orthogonal
    to it.
    """
    form, vectors = decomposed
    r, c = index_grid(m, form)
    b = bands(m, form, (r, c))
    above, left = m.abs(b.above), m.abs(b.left)
    seconds = left > 0.0
    sums = m.where(seconds, above + left, 1.0)
    x = m.where(seconds, m.sqrt(above / sums), 0.0)
    s = m.where(seconds, m.sqrt(left / sums), 0.0)
    negative, wide = b.above < 0.0, above >= left
    x, s = m.where(negative & ~wide, -x, x), m.where(negative & wide, -s, s)
    w = m.where(seconds, m.sqrt(above) * m.sqrt(left), 0.0)
    x_of_first, s_of_first, w_of_first = (behind(m, row) for row in (x, s, w))
    firsts = behind(m, left) > 0.0
    half = w_of_first - w
    real = m.where(m.equal(r, c), m.where(firsts, x_of_first, m.where(seconds, x, 1.0)), 0.0)
    other = m.where(m.equal(r + 1, c), s, m.where(m.equal(r, c + 1), s_of_first, 0.0))
    by_real, by_other = product(m, form, real), product(m, form, other)
    re = product(m, real, by_real) + product(m, other, by_other)
    im = product(m, real, by_other) - product(m, other, by_real)
    re, im = m.where(r <= c, re, 0.0), m.where(r < c, im, m.where(m.equal(r, c), half, 0.0))
    re = m.where(m.equal(r, c), b.diagonal, re)
    basis = product(m, vectors, real), product(m, vectors, other)
    return (re, im), basis, half, firsts & (behind(m, b.above) < 0.0)


def _in_pairs(m: Nodes, vectors: Pair, half: Tensor) -> Pair:
    """Make vectors of real eigenvalues real, and the second vector of a pair the first's
    conjugate."""
    re, im = vectors
    from_left = before(m, re), before(m, im)
    re = m.where(half < 0.0, from_left[0], re)
    return re, m.where(half < 0.0, -from_left[1], m.where(half > 0.0, im, im * 0.0))
