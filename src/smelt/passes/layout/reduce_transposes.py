"""Cancel Transposes across the operators between them.

    before   x ─> Transpose(p) ─> Add(c) ─> Relu ─> Transpose(p^-1) ─> y
    after    x ─> Add(c permuted) ─> Relu ─> y

There are two phases. Propagate: walk the graph once and mark each result that equals the Transpose
of a value computable without Transposes. Marked results that depend on each other form a region,
which changes layout as a whole. Weigh: a region changes if fewer elements move afterwards, counting
the Transposes that vanish and the new ones for readers outside the region.

Needs    (1) operators that commute with Transpose: elementwise, reductions, ArgMax, TopK, CumSum,
         Softmax, Concat, Split, Slice, Gather, Pad, Tile, Expand, Resize, Squeeze, Unsqueeze,
         QuantizeLinear and DequantizeLinear by tensor or axis, Shape, MatMul with a matrix if the
         last axis stays last. Constants are permuted, quantized ones too; other broadcast operands
         are reshaped if no element moves.
Keeps    (1) regions without a gain; (2) the layout of outputs, by a Transpose if needed. Block-wise
         scales, an unsorted TopK, and a Resize that no runtime can interpolate in the other layout
         do not commute.
"""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.regions import Region, Regions
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.operators.rounding import ROUNDED_ALIKE
from smelt.passes.base import EXACT, Options, PassContext, graph_pass, rounding
from smelt.passes.layout.commuted import Commuted, Perm, inverse, is_identity
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.layout.transposed_ops import commute

ROUNDED_ELSEWHERE = "group with other rounding"
OTHER_PLACES = rounding(4, "kernels sum in another order along another axis or at the end of a row")

ROUNDS = 8
"""Limit of rounds: a region next to a changed one is weighed again in another round."""


@graph_pass(
    "reduce_transposes",
    __doc__,
    exactness=OTHER_PLACES,
    declares=lambda options, stats: OTHER_PLACES if ROUNDED_ELSEWHERE in stats.fired else EXACT,
    after=("merge_consecutive_transposes",),
    source="Core ML MIL: common::reduce_transposes",
)
def reduce_transposes(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Change the layout of every region where fewer elements move afterwards, graph by graph."""
    if not cx.index().has("Transpose"):
        return
    for graph in cx.index().graphs:
        for _ in range(ROUNDS):
            if not any(node.op_type == "Transpose" for node in graph):
                break
            if not _Graph(graph, cx, rewriter, stats).run():
                break
            rewriter.flush()


class _Graph:
    """One graph and its analysis.

    ``perms``: the permutation of each marked result. ``commuted``: each node that commutes with the
    Transpose of its operands, in the form before the Transpose.
    """

    def __init__(
        self, graph: ir.Graph, cx: PassContext, rewriter: Rewriter, stats: RuleStats
    ) -> None:
        """Prepare the analysis of one graph."""
        self.graph = graph
        self.cx = cx
        self.rewriter = rewriter
        self.stats = stats
        self.perms: dict[ir.Value, Perm] = {}
        self.commuted: dict[ir.Node, Commuted] = {}

    def run(self) -> bool:
        """Change every region with a gain; return True if some regions need another round."""
        needs_another_round = False
        for region in self.propagate():
            if region.is_among(self.rewriter.dead):
                needs_another_round = True
            elif self.gain(region) > 0:  # keeps 1
                self.materialize(region)
                self.stats.fired["group of transposes"] += 1
                if not all(node.op_type in ROUNDED_ALIKE for node in region.nodes):
                    self.stats.fired[ROUNDED_ELSEWHERE] += 1
            else:
                first = next(iter(region.nodes))
                self.stats.miss("reduce_transposes", "no fewer elements would move", first)
        return needs_another_round

    # -- propagate ---------------------------------------------------------------------------

    def propagate(self) -> list[Region]:
        """Mark the results that could lose their Transpose; return the regions that change
        together."""
        regions = Regions()
        for node in self.graph:
            if _is_transpose(node):
                perm = permutation(node)
                if perm is not None and perm != tuple(sorted(perm)):
                    self.perms[node.outputs[0]] = perm
                    regions.begin(node)
                continue
            commuted = commute(node, self.perms, self.cx.constants)  # needs 1
            if commuted is not None:
                self.commuted[node] = commuted
                marked = (v for v in node.inputs if v is not None and v in self.perms)
                regions.join(node, marked)
                if not is_identity(commuted.perm):
                    self.perms.update(dict.fromkeys(node.outputs, commuted.perm))
        return regions.with_nodes()

    # -- weigh -------------------------------------------------------------------------------

    def gain(self, region: Region) -> int:
        """Return the elements that stop moving minus the elements that start moving."""
        gain = 0
        for node in region.sources:
            if all(map(_is_transpose, region.readers_outside(node.outputs[0]))):
                gain += 0 if node.outputs[0].is_graph_output() else _size(node.outputs[0])
        for node in region.nodes:
            perm = self.commuted[node].perm
            gain += sum(self.gain_at(value, perm, region) for value in node.outputs)
        return gain

    def gain_at(self, value: ir.Value, perm: Perm, region: Region) -> int:
        """Return the gain at one result: Transposes that cancel, minus a new one for other
        readers."""
        gain, outside = 0, value.is_graph_output()
        for reader in region.readers_outside(value):
            if not self.is_transpose_here(reader):
                outside = True
            elif permutation(reader) == inverse(perm):
                gain += _size(value)
        return gain - (_size(value) if outside and not is_identity(perm) else 0)

    def is_transpose_here(self, reader: ir.Node) -> bool:
        """True if ``reader`` is a Transpose of the same graph."""
        return _is_transpose(reader) and reader.graph is self.graph

    # -- materialize -------------------------------------------------------------------------

    def materialize(self, region: Region) -> None:
        """Build the region again in the other layout; its old nodes die if nobody reads them."""
        new_layout = region.inputs_of_sources()
        for node in region.nodes:
            builder = self.rewriter.builder(node, [node], "reduce_transposes")
            operands = [new_layout.get(v, v) if v is not None else None for v in node.inputs]
            new = self.commuted[node].build(builder, operands)
            new_layout.update(zip(node.outputs, new, strict=True))
        for node in region.nodes:
            self.serve_readers(node, [new_layout[value] for value in node.outputs], region)
        self.rewriter.remove_dead(reversed(region.nodes))

    def serve_readers(self, node: ir.Node, new: list[ir.Value | None], region: Region) -> None:
        """Give readers outside the region the old layout: merge their Transposes, or add a new
        one."""
        perm = self.commuted[node].perm
        outside = False
        for value, new_value in zip(node.outputs, new, strict=True):
            assert new_value is not None
            for reader in region.readers_outside(value):
                if self.is_transpose_here(reader):
                    self.merge(reader, new_value, perm)
                else:
                    outside = True
            outside = outside or value.is_graph_output()
        if not outside:  # keeps 2
            return
        # Transposes for old nodes of the region die with these nodes.
        builder = self.rewriter.builder(node, [node], "reduce_transposes")
        old_layout: list[ir.Value | None] = []
        for value, new_value in zip(node.outputs, new, strict=True):
            if scope.is_dead(value) or new_value is None or is_identity(perm):
                old_layout.append(None if scope.is_dead(value) else new_value)
            else:
                old_layout.append(builder.op("Transpose", new_value, perm=perm))
        self.replace(node, old_layout)

    def merge(self, reader: ir.Node, new: ir.Value, perm: Perm) -> None:
        """Replace ``reader``, a Transpose, by its composition with ``perm`` on the new value."""
        second = permutation(reader)
        assert second is not None
        merged = [perm[axis] for axis in second]
        builder = Builder(self.cx.model, self.graph, self.cx.shapes, before=reader)
        identity = merged == sorted(merged)
        self.replace(reader, [new if identity else builder.op("Transpose", new, perm=merged)])

    def replace(self, node: ir.Node, values: list[ir.Value | None]) -> None:
        """Replace the results of ``node`` by ``values``; record a miss if the rewriter refuses."""
        try:
            self.rewriter.replace(node, values, trust_shape=True, rule="reduce_transposes")
        except Refused as refused:
            self.stats.miss("reduce_transposes", str(refused), node)


def _is_transpose(node: ir.Node) -> bool:
    """True if ``node`` is ONNX's Transpose with attributes that smelt knows."""
    return node.op_type == "Transpose" and not node.domain and is_known(node)


def _size(value: ir.Value) -> int:
    """Return the number of elements of ``value``, with symbolic dims counted as 1.

    Gain and cost have the same symbolic dims, so these do not change the comparison.
    """
    if value.shape is None:
        return 1
    return prod(dim if isinstance(dim, int) else 1 for dim in value.shape.dims)
