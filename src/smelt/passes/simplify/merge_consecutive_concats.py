"""Merge nested Concats along the same axis into one, and drop empty pieces.

    before   a, b ─> Concat(1) ─┐
                           c ─┴─> Concat(1) ─> y         after   a, b, c ─> Concat(1) ─> y

Needs    (1) the same axis, by number or by a known rank. An empty piece has a known size of 0 along
         the axis, and at least one other piece remains.
Keeps    (1) a Concat that is an output or has other readers, because it is needed anyway; (2) more
         than 256 pieces, so that the cost of a long chain stays linear.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.ir.walk import producer_of
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.stack import concat_axis

MOST = 256
"""Limit of pieces of a merged Concat."""


@rule(op("Concat", var("first"), rest=True), same_shape=True)
def concat_of_concat(m: Match, b: Builder) -> Replacement:
    """Replace the Concat by one Concat of its pieces and of the pieces of inner Concats."""
    axis = concat_axis(m.root)
    if axis is None or _is_merged_later(m.root, axis):  # needs 1
        return None
    pieces = _pieces(m.root, axis)
    filled = [piece for piece in pieces if piece is not None and not _is_empty(piece, axis)]
    kept = filled or pieces[:1]
    return b.op("Concat", *kept, axis=axis) if kept != list(m.root.inputs) else None


def _pieces(root: ir.Node, axis: int) -> list[ir.Value | None]:
    """Return the pieces of ``root``, with inner Concats expanded up to the limit."""
    pieces: list[ir.Value | None] = []
    pieces_left = MOST - len(root.inputs)
    pending = list(reversed(root.inputs))
    while pending:
        value = pending.pop()
        inner = _inner(value, root, axis)
        if inner is None or len(inner.inputs) - 1 > pieces_left:  # keeps 2
            pieces.append(value)
        else:
            pieces_left -= len(inner.inputs) - 1
            pending.extend(reversed(inner.inputs))
    return pieces


def _is_merged_later(node: ir.Node, axis: int) -> bool:
    """True if the only reader of ``node`` is a Concat that can take its pieces.

    The last Concat of a chain takes the pieces of the whole chain at once. Merging at each Concat
    would copy and infer the first pieces once for every Concat.
    """
    joined = node.outputs[0]
    for reader in scope.consumers(joined):
        if reader.op_type != "Concat" or len(reader.inputs) - 1 + len(node.inputs) > MOST:
            return False
        if producer_of(reader.outputs[0], "Concat") is None or concat_axis(reader) != axis:
            return False
        return _inner(joined, reader, axis) is node
    return False


def _inner(value: ir.Value | None, root: ir.Node, axis: int) -> ir.Node | None:
    """Return the Concat along ``axis`` that computes ``value``; None unless ``root`` alone reads
    it."""
    node = producer_of(value, "Concat")
    if value is None or node is None or node.graph is not root.graph:
        return None
    return node if scope.has_one_use(value) and concat_axis(node) == axis else None  # keeps 1


def _is_empty(value: ir.Value, axis: int) -> bool:
    """True if ``value`` is known to have size 0 along ``axis``."""
    return value.shape is not None and len(value.shape) > axis and value.shape[axis] == 0


merge_consecutive_concats = rule_pass(
    "merge_consecutive_concats", __doc__, [concat_of_concat], exactness=EXACT
)
