"""Hold uint32 states of loops and results of branches as int32 with the same bits.

A Cast to uint32 stands behind each of these values and a Cast to int32 before it, so the nodes
around them read and compute uint32 as before.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.node_inputs import set_input
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext

UINT32, INT32 = ir.DataType.UINT32, ir.DataType.INT32
FIRST_STATE = {"Loop": 2, "Scan": 0}
"""The index of the first state or scanned input of a node and of its body."""


def narrow_states(cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
    """Give the uint32 states and results of all If, Loop and Scan nodes the type int32."""
    for graph in scope.graphs_below(cx.model.graph):
        for node in list(graph):
            if node.domain or node.op_type not in ("If", "Loop", "Scan") or rewriter.exhausted:
                continue
            ends = [*_inputs(node), *_outputs(node)]
            if ends:
                _narrow(cx, node)
                rewriter.count += 1
                stats.fired[node.op_type] += 1


def _inputs(node: ir.Node) -> list[int]:
    """Return the indexes of uint32 inputs that are inputs of the body, too."""
    first = FIRST_STATE.get(node.op_type)
    if first is None:
        return []
    inputs = node.inputs
    return [i for i, value in enumerate(inputs) if i >= first and value and value.dtype == UINT32]


def _outputs(node: ir.Node) -> list[int]:
    """Return the indexes of uint32 results."""
    return [i for i, value in enumerate(node.outputs) if value.dtype == UINT32]


def _narrow(cx: PassContext, node: ir.Node) -> None:
    """Cast the states before ``node`` and in its bodies, and its results behind it."""
    graph = node.graph
    assert graph is not None
    before = Builder(cx.model, graph, cx.shapes, before=node)
    bodies = scope.subgraphs(node)
    for index in _inputs(node):
        value = node.inputs[index]
        assert value is not None
        set_input(node, index, before.op("Cast", value, to=int(INT32)))
        inner = bodies[0].inputs[index]
        start = Builder(cx.model, bodies[0], cx.shapes, before=next(iter(bodies[0]), None))
        _read_through_cast(inner, start)
    skipped = 1 if node.op_type == "Loop" else 0  # the condition
    for index in _outputs(node):
        for body in bodies:
            value = body.outputs[index + skipped]
            body.outputs[index + skipped] = Builder(cx.model, body, cx.shapes).op(
                "Cast", value, to=int(INT32)
            )
        after = Builder(cx.model, graph, cx.shapes, before=following(node))
        _read_through_cast(node.outputs[index], after)


def _read_through_cast(value: ir.Value, b: Builder) -> None:
    """Make ``value`` int32; its readers read a Cast to uint32, which takes its place as output."""
    uses = list(value.uses())
    value.type = ir.TensorType(INT32)
    wide = b.op("Cast", value, to=int(UINT32))
    for use in uses:
        set_input(use.node, use.idx, wide)
    for each in scope.graphs_below(b.graph):
        for index, output in enumerate(each.outputs):
            if output is value:
                each.outputs[index] = wide
                if not value.is_graph_input():
                    value.name, wide.name = wide.name, value.name


def following(node: ir.Node) -> ir.Node | None:
    """Return the node after ``node`` in its graph; None if it is the last."""
    graph = node.graph
    assert graph is not None
    nodes = iter(graph)
    for each in nodes:
        if each is node:
            return next(nodes, None)
    return None
