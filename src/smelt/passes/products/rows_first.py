"""Find the rows S,B,H*D behind merged heads B*H,S,D, as ``nn.MultiheadAttention`` writes them.

S is the length of the sequence, B the batch, H the number of heads, and D the size of one head.
``unmerge_matmul`` then splits the rows into four dims, without the merged dim B*H.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.ir.walk import producer_of
from smelt.passes.layout.merge_consecutive_transposes import permutation

_HEADS_FIRST: Mapping[tuple[int, ...], Sequence[int]] = {
    (1, 0, 2): (1, 2, 0, 3),
    (1, 2, 0): (1, 2, 3, 0),
}
"""For a Transpose of S,B*H,D to B*H,S,D or B*H,D,S: the permutation that moves S,B,H,D likewise."""


@dataclass(frozen=True)
class RowsFirst:
    """``source``, S,B,H*D, of which ``heads`` of ``size`` become B,H,S,D or B,H,D,S by ``perm``."""

    source: ir.Value
    batch: Dim
    heads: int
    size: int
    perm: Sequence[int]

    def fits(self, lead: Sequence[Dim]) -> bool:
        """True if B,H equals ``lead``."""
        return same_dim(self.batch, lead[0]) and self.heads == lead[1]

    def split(self, b: Builder) -> ir.Value:
        """Return the heads with four dims, B,H,S,D or B,H,D,S, by new nodes from ``source``."""
        heads = b.op("Reshape", self.source, b.const_i64([0, 0, self.heads, self.size]))
        return b.op("Transpose", heads, perm=list(self.perm))


def rows_first(value: ir.Value) -> RowsFirst | None:
    """Return the rows of which ``value``, B*H,S,D or B*H,D,S, is made; None if there are none.

    The model makes it by a Reshape of the rows to S,B*H,D and a Transpose. If S is 1, the Reshape
    alone may do, from 1,B,H*D to B*H,1,D.
    """
    transpose = producer_of(value, "Transpose")
    axes_of_move = permutation(transpose) if transpose is not None else (1, 0, 2)
    perm = _HEADS_FIRST.get(axes_of_move or ())
    merge = producer_of(transpose.inputs[0] if transpose is not None else value, "Reshape")
    source = merge.inputs[0] if merge is not None else None
    if merge is None or source is None or source.shape is None or perm is None:
        return None
    shape, merged_shape = source.shape, merge.outputs[0].shape
    if merged_shape is None or len(shape) != 3 or len(merged_shape) != 3:
        return None
    width, size = shape[2], merged_shape[2]
    if not isinstance(width, int) or not isinstance(size, int) or not size or width % size:
        return None
    heads = width // size
    merged_count = dim_product([shape[1], heads])
    rows = [shape[0], merged_count] if transpose is not None else [merged_count, 1]
    if not all(map(same_dim, merged_shape.dims[:2], rows)) or (transpose is None and shape[0] != 1):
        return None
    return RowsFirst(source, shape[1], heads, size, perm)
