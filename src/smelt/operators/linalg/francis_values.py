"""What a QR step with two shifts computes with, side by side for each matrix of a batch."""

from __future__ import annotations

from typing import NamedTuple

from smelt.operators.formula import Tensor

Indexes = tuple[Tensor, Tensor]
"""Those of the rows, as a column, and of the columns, as a row: found once, outside of loops."""


class Bands(NamedTuple):
    """The diagonal, and what is left of it and above it, as rows ``[batch, 1, n + 1]``."""

    diagonal: Tensor
    left: Tensor
    above: Tensor


class Shifts(NamedTuple):
    """Two shifts: a pair of conjugates ``x + iy`` and ``x - iy``, or twice ``x`` if ``y`` is 0."""

    x: Tensor
    y: Tensor


class Block(NamedTuple):
    """Rows ``first`` to ``last`` of each matrix, on which it works; ``steps``: whether with a step,
    for where none is left to do, or one or two rows, there is none."""

    first: Tensor
    last: Tensor
    steps: Tensor


class Decomposed(NamedTuple):
    """The form, and vectors as columns."""

    form: Tensor
    vectors: Tensor
