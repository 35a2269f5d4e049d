"""Values of a double-shift QR step, one set per matrix of a batch."""

from __future__ import annotations

from typing import NamedTuple

from smelt.operators.formula import Tensor

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
