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


def partners(m: Nodes, count: Tensor, round_number: Tensor) -> Tensor:
    """Return the partner of each column in round ``round_number``: an involution."""
    rounds = rounds_of(m, count)
    index = count_to(m, count)
    # Columns of the circle meet if their sum is the round_number, modulo rounds; one meets itself.
    opposite = m.op("Mod", round_number - index + rounds + rounds, rounds)
    alone = m.op("Mod", round_number * m.op("Div", rounds + 1, 2), rounds)
    # With an even count the last column is not in the circle; it meets that column.
    even = m.equal(m.op("Mod", count, 2), 0)
    last = count - 1
    with_last = m.where(m.equal(index, last), alone, m.where(m.equal(index, alone), last, opposite))
    return m.op("Where", even, with_last, opposite)


def rotation(
    m: Nodes, diagonal: Tensor, partner_diagonal: Tensor, off_diagonal: Tensor, partner: Tensor
) -> tuple[Tensor, Tensor]:
    """Return ``(cosine, sine)`` per column, each as a row.

    The column ``x`` with partner ``y`` becomes ``cosine * x - sine * y``. ``diagonal`` and
    ``partner_diagonal`` are the diagonal elements of a column and its partner, ``off_diagonal`` the
    element between them to eliminate. The smaller of the two possible angles is used: G. Golub and
    C. Van Loan, "Matrix Computations", 8.5.2. Partners get opposite sines.

        ratio = (partner_diagonal - diagonal) / (2 * off_diagonal)
        tangent = sign(ratio) / (|ratio| + sqrt(ratio^2 + 1))
    """
    index = count_to(m, m.op("Squeeze", m.op("Shape", partner), ints(m, 0)))
    is_identity = m.equal(off_diagonal, 0.0) | m.equal(index, partner)
    ratio = (partner_diagonal - diagonal) / m.where(is_identity, 1.0, off_diagonal * 2.0)
    positive = (ratio > 0.0) | m.equal(ratio, 0.0) & (index < partner)
    size = m.abs(ratio)
    # Beyond 1e100 the square may overflow, and adding 1 to it changes nothing.
    root = m.where(
        size > 1e100, size, m.sqrt(m.minimum(size, 1e100) * m.minimum(size, 1e100) + 1.0)
    )
    tangent = 1.0 / (size + root)
    tangent = m.where(is_identity, 0.0, m.where(positive, tangent, -tangent))
    cosine = 1.0 / m.sqrt(tangent * tangent + 1.0)
    return cosine, tangent * cosine


def rotated_columns(m: Nodes, a: Tensor, cosine: Tensor, sine: Tensor, partner: Tensor) -> Tensor:
    """Return the columns of ``a`` after the rotations."""
    return cosine * a - sine * m.op("Gather", a, partner, axis=-1)
