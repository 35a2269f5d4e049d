"""Run what an If or a Loop surely runs, once, in place of it.

    before   If(true, then: f(x), else: g(x)) ─> y        after   f(x) ─> y
    before   If(Not(p), then: f(x), else: g(x)) ─> y      after   If(p, then: g(x), else: f(x)) ─> y
    before   Loop(trips = 1, x, body: f(i, x)) ─> y       after   f(0, x) ─> y
    before   Loop(trips = 0, x, body: f(i, x)) ─> y       after   x ─> y

A branch that runs stays what it is, under names that nothing else has; what it reads of the graphs
around it, it reads there.

Needs    a constant condition; or a constant number of trips of 0 or 1, with no condition or a
         constant one. A Loop whose condition is false at first runs no trip; one whose body says
         constantly that it ends runs one.
Keeps    what a Loop stacks in no trips, unless the dims of a slice are known; a body of sequences
         or optionals.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.shapes import static_shape
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@graph_pass("fold_control_flow", __doc__, exactness=EXACT)
def fold_control_flow(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    folder = _Folder(rewriter, stats, cx.constants)
    for node in cx.index().nodes([("", "If"), ("", "Loop")]):
        if node.graph is None or node in rewriter.dead or not is_known(node):
            continue
        try:
            folder.branch(node) if node.op_type == "If" else folder.loop(node)
        except Refused as refused:
            stats.miss("fold_control_flow", str(refused), node)


class _Folder:
    """Asks each If and Loop, outer ones first, so that nodes move once."""

    def __init__(self, rewriter: Rewriter, stats: RuleStats, constants: Constants) -> None:
        self.rewriter = rewriter
        self.stats = stats
        self.constants = constants

    def branch(self, node: ir.Node) -> None:
        condition = node.inputs[0]
        taken = self.truth(condition)
        if taken is not None:
            name = "then_branch" if taken else "else_branch"
            body = node.attributes[name].as_graph()
            self.rewriter.inline(node, body, rule="constant_condition")
            self.stats.fired["constant_condition"] += 1
            return
        negation = condition.producer() if condition is not None else None
        if negation is None or negation.op_type != "Not" or negation.domain:
            return
        if negation.inputs[0] is not None:
            self.rewriter.swap_branches(node, negation.inputs[0])
            self.stats.fired["negated_condition"] += 1

    def loop(self, node: ir.Node) -> None:
        body = node.attributes["body"].as_graph()
        trips = self.trips(node, body)
        if trips == 0:
            self.no_trip(node, body)
        elif trips == 1:
            self.one_trip(node, body)

    def truth(self, value: ir.Value | None) -> bool | None:
        """What a constant condition is; None if it is not constant."""
        found = self.constants.scalar(value)
        return None if found is None else bool(found)

    def trips(self, node: ir.Node, body: ir.Graph) -> int | None:
        """How often the body runs, if that is 0 or 1 and constant."""
        count, condition = (*node.inputs, None, None)[:2]
        most = self.constants.scalar(count)
        starts = True if condition is None else self.truth(condition)
        if starts is False or (isinstance(most, int) and most <= 0):
            return 0
        if starts is None:
            return None
        if most == 1:
            return 1
        endless = count is None or (isinstance(most, int) and most > 1)
        return 1 if endless and self.truth(body.outputs[0]) is False else None

    def no_trip(self, node: ir.Node, body: ir.Graph) -> None:
        carried = len(node.inputs) - 2
        builder = self.rewriter.builder(node, [node], "no_trip")
        values: list[ir.Value | None] = list(node.inputs[2:])
        for output, inner in zip(node.outputs[carried:], body.outputs[1 + carried :], strict=True):
            shape, dtype = static_shape(inner), inner.dtype
            if scope.is_dead(output):
                values.append(None)
            elif shape is None or dtype is None or dtype == ir.DataType.STRING:
                builder.discard()
                raise Refused("the dims of what is stacked are not known")
            else:
                values.append(builder.constant(np.zeros((0, *shape), dtype.numpy())))
        try:
            self.rewriter.replace(node, values, trust_shape=True, rule="no_trip")
        except Refused:
            builder.discard()
            raise
        self.stats.fired["no_trip"] += 1

    def one_trip(self, node: ir.Node, body: ir.Graph) -> None:
        carried = len(node.inputs) - 2
        if not all(isinstance(v.type, ir.TensorType) for v in (*node.outputs, *body.inputs)):
            raise Refused("the Loop carries what is no tensor")
        if any(scope.carries_graphs(inner) for inner in body) and not _is_static(body):
            raise Refused("dims within its body have symbols of their own")
        if any(v is None for v in node.inputs[2:]):
            raise Refused("a value that it carries is absent at first")
        for output, inner in zip(node.outputs, body.outputs[1:], strict=True):
            if output.dtype != inner.dtype:
                raise Refused("the dtype of a result is not known")
        builder = self.rewriter.builder(node, [node], "one_trip")
        first = [
            _constant(builder, body.inputs[0], np.int64(0)),
            _constant(builder, body.inputs[1], np.bool_(True)),
        ]
        given = [value for value in node.inputs[2:] if value is not None]

        if not _is_static(body):
            # Symbols of the body say nothing in the graph around it; what is inferred there does.
            for each in body:
                for result in each.outputs:
                    self.rewriter.shapes.forget(result)
        try:
            self.rewriter.inline(
                node, body, [*first, *given], 1, len(node.outputs) - carried, "one_trip"
            )
        except Refused:
            builder.discard()
            raise
        self.stats.fired["one_trip"] += 1


def _constant(builder: Builder, like: ir.Value, number: np.generic) -> ir.Value:
    """``number`` as a scalar, or as a vector where the body wants one."""
    vector = like.shape is not None and len(like.shape) == 1
    return builder.constant(np.full((1,) if vector else (), number))


def _is_static(body: ir.Graph) -> bool:
    return all(value.shape is not None and value.shape.is_static() for value in body.inputs[2:])
