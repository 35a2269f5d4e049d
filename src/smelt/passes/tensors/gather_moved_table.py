"""Move a constant table before its rows are gathered, not the rows.

    before   GatherND(table: R,H, indices: S,S,1) ─> Transpose(2,0,1) ─> Unsqueeze ─> y: 1,H,S,S
    after    Gather(table moved to 1,H,R, indices: S,S, axis = 2) ─> y

    before   Gather(table: H,R, indices: S*S, axis = 1) ─> Reshape ─> y: 1,H,S,S
    after    Gather(table as 1,H,R, indices as S,S, axis = 2) ─> y

Tables of relative positions (LeViT, CoAtNet, EfficientFormer) are gathered in this way. The bias
itself is S*S/R times as large as the table, so it is not stored.

Needs    (1) a constant table with one reader, and constant indices; in GatherND, of one axis;
         (2) moves that keep the dims of the indices together: Transpose, Reshape, Squeeze and
         Unsqueeze with known sizes.
Keeps    (1) gathered rows that are outputs or have other readers; (2) tables with a size of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation


@rule(op("GatherND", var("table"), var("indices")))
def rows_of_one_axis(m: Match, b: Builder) -> Replacement:
    """Replace a GatherND along axis 0 at constant places by a Gather."""
    table = m.constants.get(m["table"], limit=None)
    indices = m.constants.get(m["indices"], limit=None)
    if table is None or indices is None or not table.ndim or indices.shape[-1:] != (1,):  # needs 1
        return None
    if m.root.attributes.get_int("batch_dims", 0) or not is_known(m.root):
        return None
    return b.op("Gather", m["table"], b.constant(indices[..., 0]), axis=0)


_gathered = op("Gather", var("table"), var("indices"), name="gather")  # keeps 1


@rule(op(["Transpose", *RESHAPES], _gathered, rest=True, name="move"))
def moved_rows(m: Match, b: Builder) -> Replacement:
    """Gather from the moved table, at reshaped or transposed indices."""
    gather = m.node("gather")
    table = m.constants.get(m["table"], limit=None)
    indices = m.constants.get(m["indices"], limit=None)
    result = _sizes(m.root.outputs[0])
    if table is None or indices is None or not table.ndim or result is None:
        return None
    if len(scope.consumers(m["table"])) != 1:  # needs 1
        return Miss("other nodes read the table")
    if 0 in table.shape or 0 in indices.shape or not (is_known(gather) and is_known(m.root)):
        return None  # keeps 2
    axis = gather.attributes.get_int("axis", 0) % table.ndim
    if m.root.op_type == "Transpose":
        moved = _transposed(table, indices, axis, permutation(m.root))
    else:
        moved = _reshaped(table, indices, axis, result)
    if moved is None:  # needs 2
        return Miss("the move does not keep the dims of the indices together")
    table, indices, axis = moved
    return b.op("Gather", b.constant(table), b.constant(indices), axis=axis)


def _sizes(value: ir.Value) -> tuple[int, ...] | None:
    """Return the shape of ``value``; None unless all sizes are known."""
    dims = [] if value.shape is None else [dim for dim in value.shape if type(dim) is int]
    return tuple(dims) if value.shape is not None and len(dims) == len(value.shape) else None


def _transposed(
    table: np.ndarray, indices: np.ndarray, axis: int, perm: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Return ``(table, indices, axis)`` of a Gather that includes a Transpose by ``perm``.

    ``axis`` is the axis of the Gather before the Transpose. None if the Transpose separates the
    dims of the indices.
    """
    if perm is None or not indices.ndim:
        return None
    index_dims = range(axis, axis + indices.ndim)
    first = min(perm.index(dim) for dim in index_dims)
    moved_index_dims = perm[first : first + indices.ndim]
    if {*moved_index_dims} != {*index_dims}:
        return None
    other_dims = [dim for dim in perm if dim not in index_dims]
    order = [dim if dim < axis else dim - indices.ndim + 1 for dim in other_dims]
    order.insert(first, axis)
    return table.transpose(order), indices.transpose([d - axis for d in moved_index_dims]), first


def _reshaped(
    table: np.ndarray, indices: np.ndarray, axis: int, result: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Return ``(table, indices, axis)`` of a Gather that includes a Reshape to ``result``.

    ``axis`` is the axis of the Gather before the Reshape. None if the Reshape merges dims of the
    indices with others.
    """
    before = _split(result, prod(table.shape[:axis]))
    after = None if before is None else _split(result[before:], indices.size)
    if before is None or after is None:
        return None
    lead, middle, tail = result[:before], result[before : before + after], result[before + after :]
    rows = table.reshape((*lead, table.shape[axis], *tail))
    return rows, indices.reshape(middle), before


def _split(sizes: Sequence[int], product: int) -> int | None:
    """Return the largest number of leading ``sizes`` whose product is ``product``.

    None if there is none.
    """
    for count in range(len(sizes), -1, -1):
        if prod(sizes[:count]) == product:
            return count
    return None


gather_moved_table = rule_pass(
    "gather_moved_table", __doc__, [rows_of_one_axis, moved_rows], exactness=EXACT
)
"""Moves of gathered rows become moves of the constant table."""
