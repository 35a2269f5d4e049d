"""Merge a Concat of Concats along the same axis into one, and leave out pieces without rows.

    before   a, b ─> Concat(1) ─┐
                              c ─┴─> Concat(1) ─> y      after   a, b, c ─> Concat(1) ─> y

Needs    the same axis, by its number or a known rank. A piece without rows needs a size of 0,
         known, along the axis, and another piece beside it.
Keeps    a Concat that something else reads or a graph returns, because it has to be made anyway;
         more than 256 pieces, so that a long chain costs no more than its length.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.stack import concat_axis, producer_of

MOST = 256
"""Pieces of a Concat up to which those of another are added."""


@rule(op("Concat", var("first"), rest=True), same_shape=True)
def concat_of_concat(m: Match, b: Builder) -> Replacement:
    axis = concat_axis(m.root)
    if axis is None:
        return None
    pieces: list[ir.Value | None] = []
    room = MOST - len(m.root.inputs)
    for value in m.root.inputs:
        inner = _inner(value, m.root, axis)
        more = list(inner.inputs) if inner is not None else [value]
        more = more if len(more) - 1 <= room else [value]
        room -= len(more) - 1
        pieces.extend(more)
    filled = [piece for piece in pieces if piece is not None and not _is_empty(piece, axis)]
    kept = filled or pieces[:1]
    return b.op("Concat", *kept, axis=axis) if kept != list(m.root.inputs) else None


def _inner(value: ir.Value | None, root: ir.Node, axis: int) -> ir.Node | None:
    """The Concat along ``axis`` behind ``value``, if ``root`` alone reads it, once."""
    node = producer_of(value, "Concat")
    if value is None or node is None or node.graph is not root.graph:
        return None
    return node if scope.has_one_use(value) and concat_axis(node) == axis else None


def _is_empty(value: ir.Value, axis: int) -> bool:
    return value.shape is not None and len(value.shape) > axis and value.shape[axis] == 0


merge_consecutive_concats = rule_pass(
    "merge_consecutive_concats", __doc__, [concat_of_concat], exactness=EXACT
)
