"""Convert the cosines and sines of a rotary embedding to the operands of ``RotaryEmbedding``.

A model multiplies x, B,H,S,D or B,S,H,D, by arrays that broadcast to it: the same for all heads,
and often for all batches. ``RotaryEmbedding`` reads B,S,D/2, or a table P,D/2 and the positions B,S
of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.symbolic_dims.clamped_dims import equal_if_broadcast
from smelt.passes.size_from_inputs import size_from_inputs


@dataclass(frozen=True)
class Angles:
    """Cosines and sines for ``x``; ``rows`` is the axis of its positions: 2 or 1."""

    x: ir.Value
    shape: ir.Shape
    cos: ir.Value
    sin: ir.Value
    rows: int

    @property
    def heads(self) -> Dim:
        """The number of heads of x."""
        return self.shape[3 - self.rows]

    @property
    def size(self) -> int:
        """The head size of x."""
        size = self.shape[3]
        assert isinstance(size, int)
        return size

    def operands(self, b: Builder) -> list[ir.Value]:
        """Return the inputs of ``RotaryEmbedding`` after x: cosines and sines, and positions if
        they are a table.

        Angles of one sample, or of each sample, are [B, S, size / 2] without positions. Angles that
        all samples share are a table [S, size / 2].
        """
        half, batch = self.size // 2, self.shape[0]
        if batch == 1 or not _is_shared(self.cos):
            axes = b.const_i64([3 - self.rows])
            of_rank_four = [_of_rank_four(value, b) for value in (self.cos, self.sin)]
            return [b.op("Squeeze", value, axes) for value in of_rank_four]
        rows = [b.op("Reshape", value, b.const_i64([-1, half])) for value in (self.cos, self.sin)]
        if not all(self._has_all_rows(value) for value in (self.cos, self.sin)):
            # For a table that is too short, Expand fails; Gather does not in every runtime.
            target = b.op("Concat", *self._sizes(b), b.const_i64([half]), axis=0)
            return [b.op("Expand", value, target) for value in rows]
        return [*rows, self._positions(b)]

    def _positions(self, b: Builder) -> ir.Value:
        """Return the positions 0, 1, ... for each batch: B,S."""
        batch, count = self.shape[0], self.shape[self.rows]
        if isinstance(batch, int) and isinstance(count, int):
            return b.constant(np.tile(np.arange(count, dtype=np.int64), (batch, 1)))
        sizes = self._sizes(b)
        if isinstance(count, int):
            line = b.const_i64(range(count))
        else:
            end = b.op("Squeeze", sizes[1], b.const_i64([0]))
            line = b.op("Range", b.const_i64(0), end, b.const_i64(1))
        return b.op("Expand", line, b.op("Concat", *sizes, axis=0))

    def _has_all_rows(self, angles: ir.Value) -> bool:
        """True if the angles have one row for each position, whatever the sizes of a run are.

        False if one row may be broadcast to several positions.
        """
        return same_dim(_four_dims(angles.shape or ())[self.rows], self.shape[self.rows])

    def _sizes(self, b: Builder) -> list[ir.Value]:
        """Return the batch size and the number of positions of x as run-time values."""
        return [self._size(axis, b) for axis in (0, self.rows)]

    def _size(self, axis: int, b: Builder) -> ir.Value:
        """Return the size of x along ``axis``, read off a graph input if possible, which layers can
        share."""
        size = size_from_inputs(self.shape[axis], self.x.graph, b)
        return size if size is not None else b.op("Shape", self.x, start=axis, end=axis + 1)


def angles_of(x: ir.Value, cos: ir.Value, sin: ir.Value) -> Angles | None:
    """Return the Angles of x; None if ``cos`` and ``sin`` do not broadcast to x.

    Their last dim has half the size of that of x.
    """
    if x.shape is None:
        return None
    rows, sin_rows = _row_axis(x.shape, cos.shape), _row_axis(x.shape, sin.shape)
    if rows is None or rows != sin_rows or _is_shared(cos) != _is_shared(sin):
        return None
    return Angles(x, x.shape, cos, sin, rows)


def _row_axis(x: ir.Shape, angles: ir.Shape | None) -> int | None:
    """Return the axis of x along which ``angles`` has its rows; None if its dims are not those of
    x.
    """
    if angles is None or not 2 <= len(angles) <= 4 or not isinstance(x[3], int):
        return None
    batch, axis_1, axis_2, last = _four_dims(angles)
    if last != x[3] // 2 or not (batch == 1 or same_dim(batch, x[0])):
        return None
    if axis_1 == 1 and _have_equal_rows(axis_2, x[2]):
        return 2
    return 1 if axis_2 == 1 and _have_equal_rows(axis_1, x[1]) else None


def _four_dims(shape: Iterable[Dim]) -> list[Dim]:
    """Return the dims of ``shape`` broadcast to rank four."""
    dims = list(shape)
    return [*(1,) * (4 - len(dims)), *dims]


def _have_equal_rows(rows: Dim, positions: Dim) -> bool:
    """True if angles have a row for each position, given that they broadcast to x."""
    return same_dim(rows, positions) or equal_if_broadcast(rows, positions)


def _is_shared(value: ir.Value) -> bool:
    """True if all batches share the rows of ``value``."""
    return value.shape is not None and (len(value.shape) < 4 or value.shape[0] == 1)


def _of_rank_four(value: ir.Value, b: Builder) -> ir.Value:
    """Return ``value`` with leading dims of 1 added up to rank four."""
    missing = 4 - len(value.shape or ())
    return b.op("Unsqueeze", value, b.const_i64(range(missing))) if missing else value
