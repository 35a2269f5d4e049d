"""Cancel Transposes across the operators between them.

    before   x ─> Transpose(p) ─> Add(c) ─> Relu ─> Transpose(p^-1) ─> y
    after    x ─> Add(c permuted) ─> Relu ─> y

In three phases. Propagate: walk the graph once and note each result that is a Transpose of
something computable without it. Group: results that depend on each other change layout together.
Weigh: a group changes if that moves fewer elements, Transposes that vanish against those that
its other readers then need.

Needs    (1) operators that commute with Transpose: elementwise, reductions, ArgMax, TopK, CumSum,
         Softmax, Concat, Split, Slice, Gather, Pad, Tile, Expand, Resize, Squeeze, Unsqueeze,
         QuantizeLinear and DequantizeLinear by tensor or axis, Shape. Constants are permuted with
         them, quantized ones too, and other operands of a broadcast are reshaped if that suffices.
Keeps    (1) groups where nothing is won; (2) outputs keep their layout, by a Transpose if need be.
         Scales of blocks, a TopK in no order, Resize where no runtime interpolates in the other
         layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.operators.rounding import ROUNDED_ALIKE
from smelt.passes.base import EXACT, Options, PassContext, graph_pass, rounding
from smelt.passes.layout.commuted import Commuted, Perm, inverse, is_identity
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.layout.transposed_ops import commute

ROUNDED_ELSEWHERE = "group that rounds otherwise elsewhere"
OTHER_PLACES = rounding(4, "kernels sum along another axis, or end a row, in another order")

ROUNDS = 8
"""A group that borders on one that changed is weighed anew, in another round."""


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
    if not cx.index().has("Transpose"):
        return
    for graph in cx.index().graphs:
        for _ in range(ROUNDS):
            if not any(node.op_type == "Transpose" for node in graph):
                break
            if not _Graph(graph, cx, rewriter, stats).run():
                break
            rewriter.flush()


@dataclass
class _Group:
    """Nodes that change layout together, in the order of the graph, and the Transposes around."""

    nodes: list[ir.Node] = field(default_factory=list)
    sources: list[ir.Node] = field(default_factory=list)


class _Graph:
    """One graph. ``perms`` maps a result to the permutation that it could be freed of."""

    def __init__(
        self, graph: ir.Graph, cx: PassContext, rewriter: Rewriter, stats: RuleStats
    ) -> None:
        self.graph = graph
        self.cx = cx
        self.rewriter = rewriter
        self.stats = stats
        self.perms: dict[ir.Value, Perm] = {}
        self.commuted: dict[ir.Node, Commuted] = {}
        self.parent: dict[ir.Node, ir.Node] = {}

    def run(self) -> bool:
        """Change every group that wins; True if some were left for another round."""
        self.propagate()
        left = False
        for group in [group for group in self.group() if group.nodes]:
            if any(node in self.rewriter.dead for node in (*group.nodes, *group.sources)):
                left = True
            elif self.gain(group) > 0:  # keeps 1
                self.materialize(group)
                self.stats.fired["group of transposes"] += 1
                if not all(node.op_type in ROUNDED_ALIKE for node in group.nodes):
                    self.stats.fired[ROUNDED_ELSEWHERE] += 1
            else:
                self.stats.miss("reduce_transposes", "no fewer elements would move", group.nodes[0])
        return left

    # -- propagate ---------------------------------------------------------------------------

    def propagate(self) -> None:
        for node in self.graph:
            if _is_transpose(node):
                perm = permutation(node)
                if perm is not None and perm != tuple(sorted(perm)):
                    self.perms[node.outputs[0]] = perm
                    self.parent[node] = node
                continue
            commuted = commute(node, self.perms, self.cx.constants)  # needs 1
            if commuted is not None:
                self.commuted[node] = commuted
                if not is_identity(commuted.perm):
                    self.perms.update(dict.fromkeys(node.outputs, commuted.perm))
                self.parent[node] = node

    # -- group -------------------------------------------------------------------------------

    def group(self) -> list[_Group]:
        for node in self.commuted:
            for value in node.inputs:
                if value is not None and value in self.perms:
                    producer = value.producer()
                    assert producer is not None
                    self.parent[self.find(producer)] = self.find(node)
        groups: dict[ir.Node, _Group] = {}
        for node in self.parent:
            group = groups.setdefault(self.find(node), _Group())
            (group.nodes if node in self.commuted else group.sources).append(node)
        return list(groups.values())

    def find(self, node: ir.Node) -> ir.Node:
        root = node
        while self.parent[root] is not root:
            root = self.parent[root]
        while self.parent[node] is not root:
            self.parent[node], node = root, self.parent[node]
        return root

    # -- weigh -------------------------------------------------------------------------------

    def gain(self, group: _Group) -> int:
        """Elements that move now and would not, less those that would and do not now."""
        members = set(group.nodes)
        gain = 0
        for node in group.sources:
            if all(r in members or _is_transpose(r) for r in scope.consumers(node.outputs[0])):
                gain += 0 if node.outputs[0].is_graph_output() else _size(node.outputs[0])
        for node in group.nodes:
            perm = self.commuted[node].perm
            gain += sum(self.gain_at(value, perm, members) for value in node.outputs)
        return gain

    def gain_at(self, value: ir.Value, perm: Perm, members: set[ir.Node]) -> int:
        """The same at one result of the group; one that is freed of nothing costs nothing."""
        gain, outside = 0, value.is_graph_output()
        for reader in scope.consumers(value):
            if reader in members:
                continue
            if not self.is_own_transpose(reader):
                outside = True
            elif permutation(reader) == inverse(perm):
                gain += _size(value)
        return gain - (_size(value) if outside and not is_identity(perm) else 0)

    def is_own_transpose(self, reader: ir.Node) -> bool:
        return _is_transpose(reader) and reader.graph is self.graph

    # -- materialize -------------------------------------------------------------------------

    def materialize(self, group: _Group) -> None:
        """Build the group anew in the other layout; what nobody reads then dies."""
        raw: dict[ir.Value, ir.Value | None] = {n.outputs[0]: n.inputs[0] for n in group.sources}
        members = set(group.nodes)
        for node in group.nodes:
            builder = self.rewriter.builder(node, [node], "reduce_transposes")
            operands = [raw.get(v, v) if v is not None else None for v in node.inputs]
            new = self.commuted[node].build(builder, operands)
            raw.update(zip(node.outputs, new, strict=True))
        for node in group.nodes:
            self.serve_readers(node, [raw[value] for value in node.outputs], members)
        self.rewriter.remove_dead(reversed(group.nodes))

    def serve_readers(
        self, node: ir.Node, new: list[ir.Value | None], members: set[ir.Node]
    ) -> None:
        """Give readers outside the group the layout that they had."""
        perm = self.commuted[node].perm
        outside = False
        for value, freed in zip(node.outputs, new, strict=True):
            assert freed is not None
            for reader in scope.consumers(value):
                if self.is_own_transpose(reader):
                    self.merge(reader, freed, perm)
                elif reader not in members:
                    outside = True
            outside = outside or value.is_graph_output()
        if not outside:  # keeps 2
            return
        # Copies for old members, which are about to die, die with them.
        builder = self.rewriter.builder(node, [node], "reduce_transposes")
        given: list[ir.Value | None] = []
        for value, freed in zip(node.outputs, new, strict=True):
            if scope.is_dead(value) or freed is None or is_identity(perm):
                given.append(None if scope.is_dead(value) else freed)
            else:
                given.append(builder.op("Transpose", freed, perm=perm))
        self.replace(node, given)

    def merge(self, reader: ir.Node, new: ir.Value, perm: Perm) -> None:
        """``reader`` transposes what is now free of ``perm``: compose the two."""
        second = permutation(reader)
        assert second is not None
        merged = [perm[axis] for axis in second]
        builder = Builder(self.cx.model, self.graph, self.cx.shapes, before=reader)
        identity = merged == sorted(merged)
        self.replace(reader, [new if identity else builder.op("Transpose", new, perm=merged)])

    def replace(self, node: ir.Node, values: list[ir.Value | None]) -> None:
        try:
            self.rewriter.replace(node, values, trust_shape=True, rule="reduce_transposes")
        except Refused as refused:
            self.stats.miss("reduce_transposes", str(refused), node)


def _is_transpose(node: ir.Node) -> bool:
    return node.op_type == "Transpose" and not node.domain and is_known(node)


def _size(value: ir.Value) -> int:
    """Elements, each symbolic dim counted as one: the same symbols stand on both sides."""
    if value.shape is None:
        return 1
    return prod(dim if isinstance(dim, int) else 1 for dim in value.shape.dims)
