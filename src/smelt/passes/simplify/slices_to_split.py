"""Replace neighbouring Slices that cover a whole axis by one Split.

    before   x: N,H,96 ─> Slice(:32) ─> q; x ─> Slice(32:64) ─> k; x ─> Slice(64:) ─> v
    after    x ─> Split([32, 32, 32]) ─> q, k, v

PyTorch's TorchScript exporter writes ``chunk`` in this way, for queries, keys and values for
example.

Needs    (1) Slices of one value along one axis of known size, with constant bounds and step 1;
         (2) at least three adjacent parts that cover the whole axis.
Keeps    (1) two halves, by which rotary embeddings and rolled windows are recognized; (2) Slices of
         constants, and Slices that are outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.constants import is_constant
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Rewriter
from smelt.ir.rows import rows_taken
from smelt.ir.slices import cuts_of
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

FEWEST = 3
"""Smallest number of parts that become a Split."""


@dataclass(frozen=True)
class _Part:
    """Rows ``start`` to ``end`` of ``axis``, taken by the Slice ``node``."""

    node: ir.Node
    axis: int
    start: int
    end: int


@graph_pass("slices_to_split", __doc__, exactness=EXACT, after=("merge_consecutive_slices",))
def slices_to_split(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace each group of Slices by a Split."""
    for parts in _groups(cx):
        if rewriter.exhausted:
            break
        _split(parts, rewriter)
        stats.fired["slices joined"] += 1


def _groups(cx: PassContext) -> Iterator[list[_Part]]:
    """Yield the parts of one value along one axis if they cover the axis from first to last row."""
    groups: dict[tuple[object, ...], list[_Part]] = {}
    for node in cx.index().nodes([("", "Slice")]):
        x, part = node.inputs[0], _as_part(cx, node)
        if part is not None:
            groups.setdefault((x, node.graph, part.axis), []).append(part)
    for parts in groups.values():
        ordered = sorted(parts, key=lambda part: part.start)
        shape = ordered[0].node.inputs[0].shape if ordered[0].node.inputs[0] is not None else None
        begins = [part.start for part in ordered]
        ends = [0, *(part.end for part in ordered)]
        size = shape[ordered[0].axis] if shape is not None else None
        if len(parts) >= FEWEST and ends == [*begins, size]:  # needs 2, keeps 1
            yield parts


def _as_part(cx: PassContext, node: ir.Node) -> _Part | None:
    """Return the Slice ``node`` as a part.

    None if it cuts several axes, takes no rows or has a step other than 1. Also None for unknown
    sizes or bounds, for a Slice of a constant, and for a graph output.
    """
    x = node.inputs[0]
    if x is None or x.shape is None or is_constant(x) or not is_known(node):  # keeps 2
        return None
    cuts = cuts_of(node, cx.constants)
    if cuts is None or len(cuts) != 1 or node.outputs[0].is_graph_output():
        return None
    ((axis, cut),) = cuts.items()
    size = x.shape[axis]
    rows = rows_taken(size, cut) if isinstance(size, int) else range(0)  # needs 1
    if not rows or rows.step != 1:
        return None
    return _Part(node, axis, rows.start, rows.stop)


def _split(parts: list[_Part], rewriter: Rewriter) -> None:
    """Build the Split of ``parts``; its results replace the Slices."""
    first = parts[0]
    b = rewriter.builder(first.node, [part.node for part in parts], "slices_to_split")
    ordered = sorted(parts, key=lambda part: part.start)
    sizes = b.const_i64([part.end - part.start for part in ordered])
    results = b.ops("Split", first.node.inputs[0], sizes, outputs=len(parts), axis=first.axis)
    for part, result in zip(ordered, results, strict=True):
        if rewriter.exhausted:  # the remaining Slices still read the whole value
            break
        rewriter.replace(part.node, (result,), trust_shape=True)
