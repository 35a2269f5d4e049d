"""Function body for the real Schur form of general matrices: reflections, then QR steps."""

from __future__ import annotations

import math

from smelt.operators.declare import Attributes
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.balancing import Balanced, balanced, power_of_two
from smelt.operators.linalg.complex_eigenvectors import batched, inner, with_rank_of
from smelt.operators.linalg.francis_steps import real_schur
from smelt.operators.linalg.francis_values import Decomposed
from smelt.operators.linalg.matrices import (
    column,
    index_grid,
    ints,
    is_finite,
    largest,
    product,
    size,
    transposed,
)
from smelt.operators.linalg.qr import ints_scalar, reflection


def schur_steps(
    m: Nodes, attributes: Attributes, a: Tensor, precision: float
) -> tuple[Tensor, ...]:
    """Build the real Schur form, then the vectors as columns."""
    (form, vectors), balance, scale = real_schur_form(m, batched(m, a), precision, scaling=False)
    results = form * scale, balance.restored(m, vectors, left=False) * (scale / scale)
    return tuple(with_rank_of(m, inner(m, part, -2, -1), a) for part in results)


def real_schur_form(
    m: Nodes, a: Tensor, precision: float, *, scaling: bool
) -> tuple[Decomposed, Balanced, Tensor]:
    """Build ``(form and vectors of the balanced matrix, balancing, scale)``.

    ``a`` is ``[batch, n, n]``; it is divided by ``scale``, a power of two, so its elements are less
    than 2. The scale is NaN for a matrix that is not finite or does not converge. The form and the
    vectors have an extra row and column of zeros.
    """
    scale, usable = largest(m, a), is_finite(m, a)
    scale = power_of_two(m, m.where(usable & (scale > 0.0), scale, 1.0))
    matrix = m.op("Pad", m.where(usable, a / scale, 0.0), ints(m, 0, 0, 1, 1), 0.0, ints(m, -2, -1))
    count = size(m, a, -1)
    balance = balanced(m, [matrix], count, scaling=scaling)
    decomposed, failed = real_schur(m, *_hessenberg(m, balance.parts[0], count), count, precision)
    return decomposed, balance, m.where(failed | ~usable, math.nan, scale)


def _hessenberg(m: Nodes, matrix: Tensor, count: Tensor) -> Decomposed:
    """Build the Hessenberg form of ``matrix`` and the vectors of the transformation."""
    row_index, column_index = index_grid(m, matrix)
    identity = matrix * 0.0 + m.where(m.equal(row_index, column_index), 1.0, 0.0)

    def step(k: Tensor, form: Tensor, vectors: Tensor) -> tuple[Tensor, ...]:
        """Clear column ``k`` below the subdiagonal by a reflection from both sides."""
        v, tau, beta = reflection(
            m, m.where(row_index > k, column(m, form, k), 0.0), row_index, k + 1
        )
        vt = transposed(m, v)
        form = form - tau * v * product(m, vt, form)
        form = form - product(m, form, v) * (tau * vt)
        in_column = m.equal(column_index, k)
        form = m.where(
            in_column & m.equal(row_index, k + 1),
            beta,
            m.where(in_column & (row_index > k + 1), 0.0, form),
        )
        return form, vectors - product(m, vectors, v) * (tau * vt)

    count_of_steps = m.op("Max", count - 2, ints_scalar(m, 0))
    return Decomposed(*m.repeat(count_of_steps, step, (matrix, identity)))
