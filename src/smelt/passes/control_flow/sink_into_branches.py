"""Move nodes after an If into its branches if the branches return different ranks.

    before   If(c, then: f(x), else: g(x)) ─> r ─> Reshape(r, s) ─> y
    after    If(c, then: Reshape(f(x), s), else: Reshape(g(x), s)) ─> y

PyTorch writes such an If for a ``squeeze`` whose dim is known only at run time. Memory is planned
for tensors of a fixed rank, so the readers of the result move into both branches, until the ranks
agree again. Other operands of moved nodes are computed before the If.

Needs    (1) a tensor that is not known to have the same rank in both branches; (2) at most a
         thousand moved nodes, because each is duplicated.
Keeps    (1) an If with a graph output of two ranks; (2) an If whose result a Loop or a Scan
         reads: shapes in their bodies would have to be inferred again.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.cloning import clone_into
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.same_shape import conflicting_shapes
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

MOST_MOVED = 1000
"""Limit of nodes that move into the branches of one model."""

NAME = "sink_into_branches"
BRANCHES = ("then_branch", "else_branch")


@graph_pass(NAME, __doc__, exactness=EXACT, default=False)
def sink_into_branches(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Move the readers of every If with results of different ranks, then infer the shapes again."""
    if not cx.index().has("If"):
        return
    left = MOST_MOVED
    pending = list(cx.index().graphs)
    while pending:
        graph = pending.pop(0)
        for node in list(graph):
            if node.op_type != "If" or node.domain or node in rewriter.dead or not is_known(node):
                continue
            sinker = _Sinker(node, rewriter, left)
            if not sinker.open:
                continue
            try:
                pending += sinker.run()
            except Refused as refused:
                stats.miss(NAME, str(refused), node)
                continue
            stats.fired[NAME] += 1
            left -= len(sinker.moved)
    if rewriter.count:
        rewriter.flush()
        cx.shapes.infer_model()


class _Sinker:
    """One If whose readers move into its branches.

    ``open``: results of the If and of moved nodes whose rank may differ between the branches.
    ``of_branches``: the value of each branch that such a result stands for. ``after``: the If and
    all nodes that depend on it. ``reads``: the values that a node reads, captures included.
    """

    def __init__(self, node: ir.Node, rewriter: Rewriter, most: int) -> None:
        """Find the results of the If ``node`` whose rank may differ; ``most`` limits the moved
        nodes."""
        self.node = node
        self.rewriter = rewriter
        self.most = most
        self.branches = [node.attributes[name].as_graph() for name in BRANCHES]
        results = zip(node.outputs, *(branch.outputs for branch in self.branches), strict=True)
        self.of_branches = {value: pair for value, *pair in results}
        self.open = {
            v for v, pair in self.of_branches.items() if _ranks_may_differ(*pair)
        }  # needs 1
        self.moved: list[ir.Node] = []
        self.after: set[ir.Node] = {node}

    def run(self) -> list[ir.Graph]:
        """Move the readers and return the branches. On Refused, the graph is unchanged."""
        graph = self.node.graph
        assert graph is not None
        here = self.rewriter.builder(self.node, [self.node], NAME)
        self.builders = [here.in_body(branch) for branch in self.branches]
        nodes = list(graph)
        self.later = nodes[nodes.index(self.node) + 1 :]
        self.reads = {node: _read(node) for node in self.later}
        try:
            for index, node in enumerate(self.later):
                if any(value.producer() in self.after for value in self.reads[node]):
                    self.after.add(node)
                if not self.open.isdisjoint(self.reads[node]):
                    for dependent in self.unmoved_producers(index):
                        self.move(dependent)
            self.check()
        except Refused:
            for builder in reversed(self.builders):
                builder.discard()
            raise
        self.hoist(graph)
        self.exchange()
        return self.branches

    def unmoved_producers(self, index: int) -> list[ir.Node]:
        """Return the nodes to move for node ``index``, in order: itself, and the unmoved producers
        that depend on the If."""
        nodes = self.later[: index + 1]
        producers = self.with_producers(nodes[-1:], nodes)
        dependent = producers & self.after
        return [node for node in nodes if node in dependent and node not in self.moved]

    def with_producers(self, of: Sequence[ir.Node], nodes: Sequence[ir.Node]) -> set[ir.Node]:
        """Return the nodes ``of`` and all their direct and indirect producers among ``nodes``."""
        closure = set(of)
        for node in reversed(nodes):
            if node in closure:
                closure.update(filter(None, (value.producer() for value in self.reads[node])))
        return closure

    def move(self, node: ir.Node) -> None:
        """Clone ``node`` into both branches.

        Raises Refused for a node with subgraphs other than an If, and beyond the limit of moved
        nodes.
        """
        if scope.carries_graphs(node) and node.op_type != "If":  # keeps 2
            raise Refused(
                f"a {node.op_type} reads a tensor whose rank differs between the branches"
            )
        if len(self.moved) >= self.most:  # needs 2
            raise Refused(f"more than {MOST_MOVED} nodes read tensors whose rank differs")
        self.moved.append(node)
        results = []
        for index, builder in enumerate(self.builders):
            known = {value: pair[index] for value, pair in self.of_branches.items()}
            results.append(clone_into(builder, node, known))
        for value, *pair in zip(node.outputs, *results, strict=True):
            self.of_branches[value] = pair
            if _ranks_may_differ(*pair):
                self.open.add(value)

    def check(self) -> None:
        """Raise Refused if a graph output has no fixed rank, or if too few rewrites are left."""
        if any(value.is_graph_output() for value in self.open):  # keeps 1
            raise Refused("a graph output has another rank in each branch")
        limit = self.rewriter.limit
        if limit is not None and self.rewriter.count + len(self.moved) >= limit:
            raise Refused(f"the limit of {limit} rewrites is reached")

    def hoist(self, graph: ir.Graph) -> None:
        """Move nodes that the moved nodes need, but that do not depend on the If, before the If."""
        producers = self.with_producers(self.moved, self.later)
        nodes_to_hoist = [
            node for node in self.later if node in producers and node not in self.after
        ]
        if nodes_to_hoist:
            graph.remove(nodes_to_hoist)
            graph.insert_before(self.node, nodes_to_hoist)

    def exchange(self) -> None:
        """Replace the old If and the moved nodes by one If that returns what later nodes read."""
        read_later = [
            value for node in self.later if node not in self.moved for value in self.reads[node]
        ]
        values_read_later = set(read_later)
        new_results = [
            value
            for value in self.of_branches
            if value not in self.open and (value in values_read_later or value.is_graph_output())
        ]
        for index, branch in enumerate(self.branches):
            branch.outputs[:] = [self.of_branches[value][index] for value in new_results]
        attributes = [self.node.attributes[name] for name in BRANCHES]
        builder = self.rewriter.builder(self.node, [self.node, *self.moved], NAME)
        new = ir.Node("", "If", self.node.inputs, attributes, num_outputs=len(new_results))
        new_values = dict(zip(new_results, builder.add(new), strict=True))
        for name in BRANCHES:  # the new node owns the branches; they must not die with this one
            self.node.attributes.pop(name)
        for node in (*reversed(self.moved), self.node):
            for value in node.outputs:
                if value in new_values and conflicting_shapes(value.shape, new_values[value].shape):
                    value.shape = None
            values: Sequence[ir.Value | None] = [new_values.get(value) for value in node.outputs]
            self.rewriter.replace(node, values, trust_shape=True, rule=NAME)


def _read(node: ir.Node) -> tuple[ir.Value, ...]:
    """Return the values that ``node`` reads, with the values that its subgraphs capture."""
    return (*(value for value in node.inputs if value is not None), *scope.captures(node))


def _ranks_may_differ(one: ir.Value, other: ir.Value) -> bool:
    """True if two tensors are not known to have the same rank."""
    if not isinstance(one.type, ir.TensorType) or not isinstance(other.type, ir.TensorType):
        return False
    return one.shape is None or other.shape is None or len(one.shape) != len(other.shape)
