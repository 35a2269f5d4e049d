"""What a kernel reads or writes: a tensor by its name in C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smelt.native.kernels.nest import Access, broadcast_strides, row_major
from smelt.native.types import CType


@dataclass(frozen=True)
class Operand:
    """One tensor that a kernel reads or writes: its C name, type and shape.

    A size that each run has of its own stands in the shape for a number. It is dense unless
    ``steps`` are given, a stride for each dim, and starts at element ``first``.
    """

    name: str
    type: CType
    shape: tuple[int, ...]
    steps: tuple[int, ...] | None = None
    first: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        return row_major(self.shape) if self.steps is None else self.steps

    def access(self, strides: Sequence[int] | None = None, offset: int = 0) -> Access:
        """A walk over the operand by its strides unless others are given."""
        return Access(self.name, self.type, tuple(strides or self.strides), self.first + offset)

    def broadcast(self, shape: Sequence[int], *, by_run: bool = False) -> Access:
        """A walk over the operand as if it had ``shape``, as ``broadcast_strides`` has it."""
        strides = broadcast_strides(self.shape, shape, self.strides, by_run=by_run)
        return Access(self.name, self.type, strides, self.first)
