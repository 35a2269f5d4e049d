"""A tensor that a kernel reads or writes, with its name in C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smelt.native.kernels.nest import Access, broadcast_strides, row_major
from smelt.native.types import CType


@dataclass(frozen=True)
class Operand:
    """One tensor that a kernel reads or writes: C name, type and shape.

    Sizes may be run-time sizes. The tensor is dense unless ``steps`` is a stride per dim, and
    starts at element ``first``.
    """

    name: str
    type: CType
    shape: tuple[int, ...]
    steps: tuple[int, ...] | None = None
    first: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in elements, of the view if there is one, else of a dense tensor."""
        return row_major(self.shape) if self.steps is None else self.steps

    def access(self, strides: Sequence[int] | None = None, offset: int = 0) -> Access:
        """Return an access by ``strides``, by default those of the operand."""
        return Access(self.name, self.type, tuple(strides or self.strides), self.first + offset)

    def broadcast(self, shape: Sequence[int], *, by_run: bool = False) -> Access:
        """Return an access to the operand broadcast to ``shape``, as ``broadcast_strides`` does."""
        strides = broadcast_strides(self.shape, shape, self.strides, by_run=by_run)
        return Access(self.name, self.type, strides, self.first)
