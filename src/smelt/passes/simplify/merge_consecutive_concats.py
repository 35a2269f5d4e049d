"""Merge a Concat of Concats along the same axis into one, and leave out pieces without rows.

    before   a, b ─> Concat(1) ─┐
                              c ─┴─> Concat(1) ─> y      after   a, b, c ─> Concat(1) ─> y

Needs    (1) the same axis, by its number or a known rank. A piece without rows needs a size of 0,
         known, along the axis, and another piece beside it.
Keeps    (1) a Concat that something else reads or a graph returns, because it has to be made
         anyway; (2) more than 256 pieces, so that a long chain costs no more than its length.
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
"""Pieces of a Concat up to which those of another are added."""


@rule(op("Concat", var("first"), rest=True), same_shape=True)
def concat_of_concat(m: Match, b: Builder) -> Replacement:
    axis = concat_axis(m.root)
    if axis is None or _is_merged_later(m.root, axis):  # needs 1
        return None
    pieces = _pieces(m.root, axis)
    filled = [piece for piece in pieces if piece is not None and not _is_empty(piece, axis)]
    kept = filled or pieces[:1]
    return b.op("Concat", *kept, axis=axis) if kept != list(m.root.inputs) else None


def _pieces(root: ir.Node, axis: int) -> list[ir.Value | None]:
    """What ``root`` joins, with the pieces of each Concat behind it while there is room."""
    pieces: list[ir.Value | None] = []
    room = MOST - len(root.inputs)
    waiting = list(reversed(root.inputs))
    while waiting:
        value = waiting.pop()
        inner = _inner(value, root, axis)
        if inner is None or len(inner.inputs) - 1 > room:  # keeps 2
            pieces.append(value)
        else:
            room -= len(inner.inputs) - 1
            waiting.extend(reversed(inner.inputs))
    return pieces


def _is_merged_later(node: ir.Node, axis: int) -> bool:
    """True if the one reader of ``node`` is a Concat that has room for its pieces.

    That one takes the pieces of a whole run at once; merging at every Concat of the run would
    copy and infer the first pieces as often as there are Concats.
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
    """The Concat along ``axis`` behind ``value``, if ``root`` alone reads it, once."""
    node = producer_of(value, "Concat")
    if value is None or node is None or node.graph is not root.graph:
        return None
    return node if scope.has_one_use(value) and concat_axis(node) == axis else None  # keeps 1


def _is_empty(value: ir.Value, axis: int) -> bool:
    return value.shape is not None and len(value.shape) > axis and value.shape[axis] == 0


merge_consecutive_concats = rule_pass(
    "merge_consecutive_concats", __doc__, [concat_of_concat], exactness=EXACT
)
