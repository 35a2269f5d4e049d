"""Find the rows B,S,H*D behind the heads B,H,S,D of an ``Attention``."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.walk import producer_of
from smelt.passes.layout.merge_consecutive_transposes import permutation


@dataclass(frozen=True)
class Rows:
    """Heads before they go first: B,S,H,D, or B,S,D for one head; S,B,H,D with
    ``sequence_first``."""

    source: ir.Value
    heads: int
    size: int
    sequence_first: bool = False

    @property
    def length(self) -> Dim | None:
        """The dim S; None if the rank is unknown."""
        shape = self.source.shape
        return None if shape is None else shape[0 if self.sequence_first else 1]

    def merged(self, b: Builder) -> ir.Value:
        """Return the rows as B,S,H*D."""
        rows = b.op("Reshape", self.source, b.const_i64([0, 0, self.heads * self.size]))
        return b.op("Transpose", rows, perm=[1, 0, 2]) if self.sequence_first else rows


def rows_of(value: ir.Value) -> Rows | None:
    """Return the rows from which ``value``, B,H,S,D, is transposed; None if sizes are not constant.

    A Reshape can also move a single head first.
    """
    node, shape = producer_of(value, "Transpose", "Reshape", "Unsqueeze"), value.shape
    source = node.inputs[0] if node is not None else None
    if node is None or source is None or source.shape is None or shape is None or len(shape) != 4:
        return None
    heads, size = shape[1], shape[3]
    if not isinstance(heads, int) or not isinstance(size, int):
        return None
    if node.op_type == "Transpose":
        if permutation(node) in ((0, 2, 1, 3), (1, 2, 0, 3)):
            return Rows(source, heads, size, sequence_first=permutation(node) == (1, 2, 0, 3))
        source_before = _swapped_twice(node) if heads == 1 else None
        return Rows(source_before, 1, size) if source_before is not None else None
    batch, length = shape[0], shape[2]
    expected = [[batch, length, size], [batch, length, 1, size]]
    is_single_head_move = any(
        len(dims) == len(source.shape) and all(map(same_dim, dims, source.shape))
        for dims in expected
    )
    return Rows(source, 1, size) if heads == 1 and is_single_head_move else None


def _swapped_twice(node: ir.Node) -> ir.Value | None:
    """Return B,S,D if ``node`` transposes it to B,1,S,D by way of B,D,S and B,1,D,S, else None."""
    unmerged = producer_of(node.inputs[0], "Reshape", "Unsqueeze")
    swapped = producer_of(unmerged.inputs[0], "Transpose") if unmerged is not None else None
    if unmerged is None or swapped is None or permutation(node) != (0, 1, 3, 2):
        return None
    swapped_shape, unmerged_shape = swapped.outputs[0].shape, unmerged.outputs[0].shape
    if permutation(swapped) != (0, 2, 1) or swapped_shape is None or unmerged_shape is None:
        return None
    expected = [swapped_shape[0], 1, swapped_shape[1], swapped_shape[2]]
    return swapped.inputs[0] if all(map(same_dim, expected, unmerged_shape)) else None


def misfit_of(q: ir.Value, keys: ir.Value, v: ir.Value) -> str | None:
    """Return why queries, keys and values do not make an Attention on B,H,S,D; None if they do.

    Keys and values may have a single head, which all heads of the queries share.
    """
    if q.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return "queries are neither float32 nor float16"
    shapes = [x.shape.dims for x in (q, keys, v) if x.shape is not None and len(x.shape) == 4]
    if len(shapes) < 3:
        return "queries, keys or values are not known to have rank 4"
    queries, *keys_and_values = shapes
    same_batch = all(same_dim(queries[0], dims[0]) for dims in keys_and_values)
    one_head = all(dims[1] == 1 for dims in keys_and_values)
    if same_batch and (one_head or all(same_dim(queries[1], dims[1]) for dims in keys_and_values)):
        return None
    return "batch sizes or head counts of queries, keys and values are not proved equal"
