"""Move Cast and Transpose to just before their first reader.

    before   t = Transpose(x)  a = Relu(z)  b = Exp(a)  y = Add(t, b)
    after    a = Relu(z)  b = Exp(a)  t = Transpose(x)  y = Add(t, b)

Only the order changes: a target that computes in the order of the graph then keeps the result for
a shorter time. ``ops`` lists the operators to move. A branch or loop body counts as a reader.

Needs    (1) an explicit request: the move helps only if the result is larger than its operand, or
         if the operand stays in memory anyway.
Keeps    (1) the order of all other nodes; (2) moved nodes without a reader, which come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass
from smelt.passes.operator_names import operator_names


@dataclass(frozen=True)
class Moved:
    """``ops``: the ONNX operators to move."""

    ops: tuple[str, ...] = ("Cast", "Transpose")


@graph_pass(
    "topological_reorder",
    __doc__,
    exactness=EXACT,
    default=False,  # needs 1
    options_type=Moved,
    source="Core ML MIL: common::topological_reorder",
)
def topological_reorder(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Moved
) -> None:
    """Move the listed operators to their first reader in each graph."""
    ops = operator_names("topological-reorder", options.ops, cx.model)
    for graph in scope.graphs(cx.model):
        if rewriter.exhausted:
            return
        before = list(graph)
        after = _order(before, ops)
        if after == before:
            continue
        previous = {node: node_before for node_before, node in pairwise(before)}
        moved = [
            node for node_before, node in pairwise(after) if previous.get(node) is not node_before
        ]
        count = sum(_is_listed(node, ops) for node in moved)
        graph.extend(after)
        stats.fired["node moved"] += count
        rewriter.count += count


def _is_listed(node: ir.Node, ops: frozenset[str]) -> bool:
    """True if ``node`` is an ONNX operator of ``ops``."""
    return node.op_type in ops and not node.domain


def _order(nodes: list[ir.Node], ops: frozenset[str]) -> list[ir.Node]:
    """Return ``nodes`` with each listed node delayed until another node needs it."""
    waiting: dict[ir.Node, None] = {}
    order: list[ir.Node] = []
    for node in nodes:
        if _is_listed(node, ops):
            waiting[node] = None
        else:
            _append_with_sources(node, waiting, order)  # keeps 1
    for node in list(waiting):  # keeps 2
        if node in waiting:
            _append_with_sources(node, waiting, order)
    return order


def _append_with_sources(node: ir.Node, waiting: dict[ir.Node, None], order: list[ir.Node]) -> None:
    """Append ``node`` to ``order``, after the nodes of ``waiting`` that it needs, directly or
    not."""
    pending = [node]
    while pending:
        top = pending[-1]
        needed = [source for source in _sources(top) if source in waiting]
        if needed and (top is node or top in waiting):
            pending.extend(reversed(needed))
            continue
        pending.pop()
        if top is node or top in waiting:
            waiting.pop(top, None)
            order.append(top)


def _sources(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes that compute the inputs of ``node`` and the values that its subgraphs
    capture."""
    for value in (*node.inputs, *scope.captures(node)):
        producer = value.producer() if value is not None else None
        if producer is not None:
            yield producer
