"""Merge two Slices into one, take a Slice of a Concat from the one piece that it reads, and drop a
Concat of Slices that are all rows of one tensor in their order.

    before   x: [N,5] ─> Slice(1:3) ─> Slice(::-1) ─> y             after   x ─> Slice(2:0:-1) ─> y
    before   a: [N,2], b: [N,3] ─> Concat(1) ─> Slice(2:4) ─> y     after   b ─> Slice(0:2) ─> y
    before   Slice(x, :2), Slice(x, 2:) ─> Concat ─> y              after   x ─> y

``jnp.pad`` and ``jnp.flip`` write mirrored rows in this way, and PyTorch writes ``x[:, 1:, 2:]``.

Needs    (1) constant starts, ends, axes and steps. Along an axis that both Slices cut: a known
         size, or steps of 1 and nonnegative starts and ends. For a Concat: known sizes of the
         pieces, and rows of one piece only. For a Concat of Slices: each begins where the one
         before it ends, and cuts no other axis.
Keeps    (1) the inner Slice or Concat for its other readers; (2) rows of two pieces.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rows import LAST, UNBOUNDED, Cut, cut_of_rows, rows_taken, slice_operands
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.slices import cuts_of
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.stack import concat_axis


@rule(
    op("Slice", op("Slice", var("x"), rest=True, name="inner", shared=True), rest=True),
    same_shape=True,
)
def slice_of_slice(m: Match, b: Builder) -> Replacement:
    """Replace two Slices by one."""
    x = m["x"]
    inner, outer = cuts_of(m.node("inner"), m.constants), cuts_of(m.root, m.constants)
    if x.shape is None:  # needs 1
        return Miss("the rank of x is unknown")
    if inner is None or outer is None:  # needs 1
        return Miss("the bounds of a Slice are not constant")
    cuts = dict(inner)
    for axis, cut in outer.items():
        size = x.shape[axis]
        new_cut = cut
        if axis in inner:
            merged = _merged_cut(size if isinstance(size, int) else None, inner[axis], cut)
            if merged is None:
                return Miss("the size of an axis that both Slices cut is unknown")
            new_cut = merged
        cuts[axis] = new_cut
    return _sliced(b, x, cuts)


@rule(
    # keeps 1
    op("Slice", op("Concat", var("first"), rest=True, name="joined", shared=True), rest=True),
    same_shape=True,
)
def slice_of_concat(m: Match, b: Builder) -> Replacement:
    """Replace a Slice of a Concat by a Slice of one piece."""
    joined, cuts = m.node("joined"), cuts_of(m.root, m.constants)
    axis, total = concat_axis(joined), m["joined"].shape
    if cuts is None or axis is None or total is None or axis not in cuts:
        return None
    size = total[axis]
    if not isinstance(size, int):
        return Miss("the size of the Concat along the axis is unknown")
    rows = rows_taken(size, cuts[axis])
    if not rows:
        return Miss("the Slice takes nothing along the axis")
    start = 0
    for piece in joined.inputs:
        dim = piece.shape[axis] if piece is not None and piece.shape is not None else None
        if piece is None or not isinstance(dim, int):
            return Miss("the size of an operand of the Concat is not known")
        if start <= min(rows) and max(rows) < start + dim:
            moved = range(rows.start - start, rows.stop - start, rows.step)
            return _sliced(b, piece, {**cuts, axis: cut_of_rows(moved)})
        start += dim
    return Miss("the Slice takes rows of more than one operand of the Concat")  # keeps 2


@rule(
    op("Concat", op("Slice", var("x"), rest=True, shared=True), rest=True),  # keeps 1
    same_shape=True,
)
def concat_of_slices(m: Match, b: Builder) -> Replacement:
    """Replace a Concat of Slices that together are x by x."""
    axis, x = concat_axis(m.root), m["x"]
    if axis is None or x.shape is None:
        return None
    size, end = x.shape[axis], 0
    for piece in m.root.inputs:
        node = piece.producer() if piece is not None else None
        if node is None or (node.domain, node.op_type) != ("", "Slice") or node.inputs[0] is not x:
            return None
        cuts = cuts_of(node, m.constants)
        if cuts is None or cuts.keys() != {axis}:
            return Miss("a Slice cuts another axis, or its bounds are not constant")
        rows = _forward_rows(size if isinstance(size, int) else None, cuts[axis])
        if rows is None or rows[0] != end:
            return Miss("the Slices do not follow each other")
        end = rows[1]
    is_whole = end == size if isinstance(size, int) else end in UNBOUNDED
    return x if is_whole else Miss("the Slices end before the last row")


def _forward_rows(size: int | None, cut: Cut) -> tuple[int, int] | None:
    """Return the first row of a Slice with step 1 and the row behind its last one; None for others.

    Along an axis of unknown ``size``, starts and ends count from the first row, and may lie behind
    the last one.
    """
    if size is not None:
        rows = rows_taken(size, cut)
        return (rows.start, rows.stop) if cut.step == 1 and rows else None
    return (cut.start, cut.end) if cut.step == 1 and 0 <= cut.start <= cut.end else None


def _merged_cut(size: int | None, inner: Cut, outer: Cut) -> Cut | None:
    """Return the cut that equals ``outer`` applied after ``inner``; None if it is unknown.

    ``size`` is the size of the axis, None if unknown.
    """
    if size is not None:
        rows = rows_taken(size, inner)
        outer_rows = rows_taken(len(rows), outer)
        return cut_of_rows(_subset_of_rows(rows, outer_rows))
    (start, end, step), (outer_start, outer_end, outer_step) = inner, outer
    if min(start, end, outer_start, outer_end) < 0 or (step, outer_step) != (1, 1):
        return None
    return Cut(min(start + outer_start, LAST), min(end, start + outer_end, LAST), 1)


def _subset_of_rows(rows: range, indices: range) -> range:
    """Return ``rows[i]`` for every i of ``indices``, which are all in range, as a range."""
    if not indices:
        return range(0)
    step = rows.step * indices.step
    return range(rows[indices[0]], rows[indices[-1]] + (1 if step > 0 else -1), step)


def _sliced(b: Builder, x: ir.Value, cuts: dict[int, Cut]) -> ir.Value:
    """Return the Slice of ``x`` with a start, end and step for each axis of ``cuts``."""
    return b.op("Slice", x, *(b.const_i64(numbers) for numbers in slice_operands(cuts)))


merge_consecutive_slices = rule_pass(
    "merge_consecutive_slices",
    __doc__,
    [slice_of_slice, slice_of_concat, concat_of_slices],
    exactness=EXACT,
)
