"""Read the pieces of a Concat as rows of one of them: padding with a tensor's own rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.opset import RESHAPES
from smelt.ir.rows import rows_taken
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.slices import cuts_of
from smelt.ir.walk import Walk, producer_of
from smelt.passes.tensors.stack import dims_of

MOST = 4096
"""Limit of rows that are joined to a tensor; more are not taken for padding."""


@dataclass
class RowPadding:
    """``x``, of ``size`` rows, joined with its own rows ``before`` and ``after`` it."""

    x: ir.Value
    size: int
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


def row_padding_of(walk: Walk, axis: int, constants: Constants) -> RowPadding | str | None:
    """Return the padding that the root of ``walk``, a Concat along ``axis``, computes.

    Returns a reason if it may be padding that is not supported, and None if no piece is the source
    of all others. The nodes that compute the rows are added to ``walk``.
    """
    pieces = [value for value in walk.root.inputs if value is not None]
    if len(pieces) < 2:
        return None
    sources = [_source(value, axis) for value in pieces]
    source_values = {source[0] for source in sources if source is not None}
    middles = [index for index, value in enumerate(pieces) if value in source_values]
    if len(middles) != 1:
        return None
    x = pieces[middles[0]]
    dims = dims_of(x)
    if dims is None:
        return None
    size = dims[axis]
    if not isinstance(size, int):
        return "the size along the axis is not known"
    padding = RowPadding(x, size)
    for index, source in enumerate(sources):
        if index == middles[0]:
            continue
        if source is None or source[0] is not x:
            return None
        _, nodes, repeats = source
        rows = _taken_rows(nodes[-1], axis, size, constants)
        if rows is None or (repeats > 1 and len(rows) != 1):
            return "a piece is not a constant slice along the axis only"
        side = padding.before if index < middles[0] else padding.after
        if len(side) + len(rows) * repeats > MOST:
            return "the padding has too many rows"
        side.extend(list(rows) * repeats)
        walk.take(nodes)
    return padding


def _source(value: ir.Value, axis: int) -> tuple[ir.Value, list[ir.Node], int] | None:
    """Return ``(source, nodes, times)`` if ``nodes`` cut rows from ``source`` to make ``value``.

    The last of ``nodes`` is the Slice or Gather; the others repeat a row ``times`` times. None if
    no Slice or Gather makes the value.
    """
    repeated, nodes, times = _unrepeated(value, axis)
    cut = producer_of(repeated, "Slice", "Gather")
    if cut is None or cut.inputs[0] is None:
        return None
    return cut.inputs[0], [*nodes, cut], times


def _unrepeated(value: ir.Value, axis: int) -> tuple[ir.Value, list[ir.Node], int]:
    """Return ``(row, nodes, times)``: ``nodes`` repeat ``row`` along ``axis`` to make ``value``.

    An Expand or a Tile repeats a row along the axis, or along a new dim that a Reshape merges with
    the axis (``jnp.repeat``). Returns ``value``, no nodes and 1 if nothing is repeated.
    """
    unchanged: tuple[ir.Value, list[ir.Node], int] = (value, [], 1)
    merge = producer_of(value, *RESHAPES)
    repeat = producer_of(merge.inputs[0] if merge is not None else value, "Expand", "Tile")
    row = repeat.inputs[0] if repeat is not None else None
    if repeat is None or row is None:
        return unchanged
    nodes = [merge, repeat] if merge is not None else [repeat]
    split = producer_of(row, *RESHAPES) if merge is not None else None
    if split is not None and split.inputs[0] is not None:
        nodes.append(split)
        source = split.inputs[0]
    else:
        source = row
    times = _times(dims_of(source), dims_of(row), dims_of(repeat.outputs[0]), dims_of(value), axis)
    return (source, [node for node in nodes if node is not None], times) if times else unchanged


Dims = tuple[Dim, ...]


def _times(
    source: Dims | None, narrow: Dims | None, wide: Dims | None, result: Dims | None, axis: int
) -> int:
    """Return how often ``source``, one row along ``axis``, is repeated along it; 0 if it is not.

    ``narrow`` is the source with dims of size 1 inserted, ``wide`` repeats one of these, and
    ``result`` is ``wide`` merged again. For example, [1, C], [1, 1, C], [1, 4, C] and [4, C] give
    4.
    """
    if source is None or narrow is None or wide is None or result is None:
        return 0
    if len(narrow) != len(wide) or len(source) != len(result) or source[axis] != 1:
        return 0
    pairs = zip(narrow, wide, strict=True)
    grown_axes = [
        grown_axis
        for grown_axis, (narrow_dim, wide_dim) in enumerate(pairs)
        if not same_dim(narrow_dim, wide_dim)
    ]
    repeats = result[axis]
    if len(grown_axes) != 1 or not isinstance(repeats, int):
        return 0
    grown_axis = grown_axes[0]
    if narrow[grown_axis] != 1 or wide[grown_axis] != repeats:
        return 0
    dims_around = ((wide[:grown_axis], wide[grown_axis + 1 :]), (result[:axis], result[axis + 1 :]))
    for sides in dims_around:
        for side, expected in zip(sides, (source[:axis], source[axis + 1 :]), strict=True):
            if not _same_but_for_ones(side, expected):
                return 0
    return repeats


def _same_but_for_ones(a: Dims, b: Dims) -> bool:
    """True if the dims are equal after dims of size 1 are dropped."""
    left, right = ([dim for dim in dims if dim != 1] for dims in (a, b))
    return len(left) == len(right) and all(map(same_dim, left, right))


def _taken_rows(cut: ir.Node, axis: int, size: int, constants: Constants) -> list[int] | None:
    """Return the rows that a Slice or Gather takes along ``axis``, in order.

    ``size`` is the number of rows. None for a cut of other axes, and for unknown indices.
    """
    if cut.op_type == "Slice":
        cuts = cuts_of(cut, constants)
        if cuts is None or set(cuts) != {axis}:
            return None
        if size > MOST:
            return _at_most_few_rows(size, cuts[axis])
        return list(rows_taken(size, cuts[axis]))
    index, result = cut.inputs[1], cut.outputs[0].shape
    if index is None or index.shape is None or len(index.shape) != 1 or result is None:
        return None  # an index of another rank would change the rank of the result
    indices, along = constants.ints(index), cut.attributes.get_int("axis", 0)
    if indices is None or along % len(result) != axis:
        return None
    if any(not -size <= row < size for row in indices):
        return None
    return [row % size for row in indices]


def _at_most_few_rows(size: int, cut: tuple[int, int, int]) -> list[int] | None:
    """Return the rows of ``cut`` if they are at most ``MOST``, else None."""
    rows = rows_taken(size, cut)
    return list(rows) if len(rows) <= MOST else None
