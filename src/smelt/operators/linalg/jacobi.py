"""Pairing of columns and rotations for both Jacobi methods.

The columns play a round-robin tournament by the circle method, so all pairs of a round rotate at
once. R. Brent and F. Luk, "The solution of singular-value and symmetric eigenvalue problems on
multiprocessor arrays" (1985). A column without partner is paired with itself and stays unchanged.
"""

from __future__ import annotations

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.matrices import count_to, ints

SWEEPS = 40
"""Tournaments after which a matrix counts as not converging; ten are usual."""


def rounds_of(m: Nodes, count: Tensor) -> Tensor:
    """Return the number of rounds of a tournament of ``count`` columns: odd and at least 1."""
    return m.op("Max", count - 1 + m.op("Mod", count, 2), 1)


def partners(m: Nodes, count: Tensor, turn: Tensor) -> Tensor:
    """Return the partner of each column in round ``turn``: an involution."""
    rounds = rounds_of(m, count)
    index = count_to(m, count)
    # The columns of the circle whose sum is the turn meet; one is its own opposite.
    opposite = m.op("Mod", turn - index + rounds + rounds, rounds)
    alone = m.op("Mod", turn * m.op("Div", rounds + 1, 2), rounds)
    # With an even count the last column stands outside of the circle and meets that one.
    even = m.equal(m.op("Mod", count, 2), 0)
    last = count - 1
    with_last = m.where(m.equal(index, last), alone, m.where(m.equal(index, alone), last, opposite))
    return m.op("Where", even, with_last, opposite)


def rotation(
    m: Nodes, own: Tensor, other: Tensor, shared: Tensor, partner: Tensor
) -> tuple[Tensor, Tensor]:
    """Return cosine and sine per column, as rows: it becomes ``cosine * it - sine * partner``.

    ``own`` and ``other`` are the diagonal elements of a column and its partner, ``shared`` the
    element between them to eliminate. G. Golub and C. Van Loan, "Matrix Computations", 8.5.2: the
    smaller of two angles. Partners get opposite sines.
    """
    index = count_to(m, m.op("Squeeze", m.op("Shape", partner), ints(m, 0)))
    none = m.equal(shared, 0.0) | m.equal(index, partner)
    ratio = (other - own) / m.where(none, 1.0, shared * 2.0)
    positive = (ratio > 0.0) | m.equal(ratio, 0.0) & (index < partner)
    size = m.abs(ratio)
    # Beyond this the square would overflow, and 1 under the root has long been lost.
    root = m.where(
        size > 1e100, size, m.sqrt(m.minimum(size, 1e100) * m.minimum(size, 1e100) + 1.0)
    )
    tangent = 1.0 / (size + root)
    tangent = m.where(none, 0.0, m.where(positive, tangent, -tangent))
    cosine = 1.0 / m.sqrt(tangent * tangent + 1.0)
    return cosine, tangent * cosine


def turned(m: Nodes, a: Tensor, cosine: Tensor, sine: Tensor, partner: Tensor) -> Tensor:
    """Return the columns of ``a`` after the rotations."""
    return cosine * a - sine * m.op("Gather", a, partner, axis=-1)
