"""Values of a double-shift QR step, one set per matrix of a batch, and rows next to a row."""

from __future__ import annotations

from typing import NamedTuple

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.matrices import ints, transposed

Indexes = tuple[Tensor, Tensor]
"""Row indices as a column, and column indices as a row; computed once, outside of loops."""


class Bands(NamedTuple):
    """The diagonal, and the elements left of and above it, as rows ``[batch, 1, n + 1]``."""

    diagonal: Tensor
    left: Tensor
    above: Tensor


class Shifts(NamedTuple):
    """Two shifts: a conjugate pair ``x + iy``, ``x - iy``, or twice ``x`` if ``y`` is 0."""

    x: Tensor
    y: Tensor


class Block(NamedTuple):
    """The active rows ``first`` to ``last`` of each matrix.

    ``steps`` is false if no step is needed: the matrix is finished, or the block has one or two
    rows.
    """

    first: Tensor
    last: Tensor
    steps: Tensor


class Decomposed(NamedTuple):
    """The form, and vectors as columns."""

    form: Tensor
    vectors: Tensor


def bands(m: Nodes, form: Tensor, indexes: Indexes) -> Bands:
    """Return the diagonal and the elements left of and above it."""
    r, c = indexes
    diagonal, above = (
        m.op("ReduceSum", m.where(m.equal(r, c - k), form, 0.0), ints(m, -2), keepdims=1)
        for k in (0, 1)
    )
    left = m.op("ReduceSum", m.where(m.equal(r, c + 1), form, 0.0), ints(m, -1), keepdims=1)
    return Bands(diagonal, transposed(m, left), above)


def from_previous(m: Nodes, row: Tensor) -> Tensor:
    """Return ``row`` with each element replaced by the one before it, 0 at the first place."""
    return m.op("Pad", row, ints(m, 1, -1), 0.0, ints(m, -1))


def from_next(m: Nodes, row: Tensor) -> Tensor:
    """Return ``row`` with each element replaced by the one after it, 0 at the last place."""
    return m.op("Pad", row, ints(m, -1, 1), 0.0, ints(m, -1))
