"""Inline an If, Loop or Scan that is known to run one body once, or none.

    before   If(true, then: f(x), else: g(x)) ─> y        after   f(x) ─> y
    before   If(Not(p), then: f(x), else: g(x)) ─> y      after   If(p, then: g(x), else: f(x)) ─> y
    before   Loop(trips = 1, x, body: f(i, x)) ─> y       after   f(0, x) ─> y
    before   Loop(trips = 0, x, body: f(i, x)) ─> y       after   x ─> y
    before   Scan(x, rows[1], body: f(x, row)) ─> y       after   f(x, Squeeze(rows)) ─> y

The inlined body gets unique names; it still reads outer values directly.

Needs    (1) a constant condition; (2) a constant trip count of 0 or 1 and no condition or a
         constant one. A Loop whose initial condition is false runs zero iterations; a Loop whose
         body always returns false runs one; (3) a Scan over dims of 1 that stacks its results
         along axis 0.
Keeps    (1) scan outputs of zero iterations, unless the dims of one element are known; (2) a body
         with optional values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.inlining import inline
from smelt.ir.known_forms import is_known
from smelt.ir.node_inputs import first_inputs
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.same_shape import static_shape
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@graph_pass("fold_control_flow", __doc__, exactness=EXACT)
def fold_control_flow(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Fold each If, Loop and Scan of the model."""
    folder = _Folder(rewriter, stats, cx.constants)
    for node in cx.index().nodes([("", kind) for kind in ("If", "Loop", "Scan")]):
        if node.graph is None or node in rewriter.dead or not is_known(node):
            continue
        try:
            folder.fold(node)
        except Refused as refused:
            stats.miss("fold_control_flow", str(refused), node)


class _Folder:
    """Visits each If, Loop and Scan, outer ones first, so that nodes move only once."""

    def __init__(self, rewriter: Rewriter, stats: RuleStats, constants: Constants) -> None:
        self.rewriter = rewriter
        self.stats = stats
        self.constants = constants

    def fold(self, node: ir.Node) -> None:
        """Fold ``node`` if possible; raises Refused for a near miss, with the reason."""
        match node.op_type:
            case "If":
                self.branch(node)
            case "Loop":
                self.loop(node)
            case "Scan":
                self.scan(node)

    def branch(self, node: ir.Node) -> None:
        """Inline the branch of a constant condition, or swap the branches of a negated one."""
        condition = node.inputs[0]
        truth = self.truth(condition)  # needs 1
        if truth is not None:
            name = "then_branch" if truth else "else_branch"
            body = node.attributes[name].as_graph()
            inline(self.rewriter, node, body, rule="constant_condition")
            self.stats.fired["constant_condition"] += 1
            return
        negation = condition.producer() if condition is not None else None
        if negation is None or negation.op_type != "Not" or negation.domain:
            return
        if negation.inputs[0] is not None:
            self.rewriter.swap_branches(node, negation.inputs[0])
            self.stats.fired["negated_condition"] += 1

    def loop(self, node: ir.Node) -> None:
        """Inline a Loop of zero or one iterations."""
        body = node.attributes["body"].as_graph()
        trips = self.known_trips(node, body)  # needs 2
        if trips == 0:
            self.replace_by_initial_values(node, body)
        elif trips == 1:
            self.inline_one_iteration(node, body)

    def truth(self, value: ir.Value | None) -> bool | None:
        """Return a constant condition as a bool; None if it is not constant."""
        number = self.constants.scalar(value)
        return None if number is None else bool(number)

    def known_trips(self, node: ir.Node, body: ir.Graph) -> int | None:
        """Return the number of iterations of a Loop if it is known to be 0 or 1, else None."""
        count, condition = first_inputs(node, 2)
        limit = self.constants.scalar(count)
        first_condition = True if condition is None else self.truth(condition)
        if first_condition is False or (isinstance(limit, int) and limit <= 0):
            return 0
        if first_condition is None:
            return None
        if limit == 1:
            return 1
        # The first iteration runs; a body that always returns false ends the Loop after it.
        allows_one = count is None or (isinstance(limit, int) and limit > 1)
        return 1 if allows_one and self.truth(body.outputs[0]) is False else None

    def replace_by_initial_values(self, node: ir.Node, body: ir.Graph) -> None:
        """Replace the Loop by its initial values and empty scan outputs."""
        carried = len(node.inputs) - 2
        builder = self.rewriter.builder(node, [node], "no_trip")
        values: list[ir.Value | None] = list(node.inputs[2:])
        for output, inner in zip(node.outputs[carried:], body.outputs[1 + carried :], strict=True):
            shape, dtype = static_shape(inner), inner.dtype
            if scope.is_dead(output):
                values.append(None)
            elif shape is None or dtype is None or dtype == ir.DataType.STRING:
                builder.discard()
                raise Refused("the dims of a scan output are unknown")  # keeps 1
            else:
                values.append(builder.constant(np.zeros((0, *shape), dtype.numpy())))
        try:
            self.rewriter.replace(node, values, trust_shape=True, rule="no_trip")
        except Refused:
            builder.discard()
            raise
        self.stats.fired["no_trip"] += 1

    def inline_one_iteration(self, node: ir.Node, body: ir.Graph) -> None:
        """Inline the body of the Loop once, with iteration 0 and condition true."""
        if any(v is None for v in node.inputs[2:]):
            raise Refused("a carried value has no initial value")
        self.check(node, body, body.inputs[2:], body.outputs[1:])
        builder = self.rewriter.builder(node, [node], "one_trip")
        first = [
            _constant(builder, body.inputs[0], np.int64(0)),
            _constant(builder, body.inputs[1], np.bool_(True)),
        ]
        initial = [value for value in node.inputs[2:] if value is not None]
        stacked = len(node.outputs) - len(initial)
        self.run_once(node, body, body.inputs[2:], builder, [*first, *initial], 1, stacked)

    def scan(self, node: ir.Node) -> None:
        """Inline the body of a Scan whose scanned dims are 1, which takes one step."""
        body = node.attributes["body"].as_graph()
        count = node.attributes["num_scan_inputs"].as_int()
        states, scanned = node.inputs[:-count], node.inputs[-count:]
        axes = _axes(node, "scan_input_axes", count)
        if not all(map(_is_one, scanned, axes)) or None in states:  # needs 3
            return
        if any(_axes(node, "scan_output_axes", 0)):
            raise Refused("a scan output is not stacked along axis 0")
        self.check(node, body, body.inputs, body.outputs)
        builder = self.rewriter.builder(node, [node], "one_step")
        operands = [value for value in states if value is not None]
        stacked = len(node.outputs) - len(operands)
        pairs = zip(scanned, axes, strict=True)
        operands += [
            builder.op("Squeeze", value, builder.const_i64([axis]))
            for value, axis in pairs
            if value is not None
        ]
        self.run_once(node, body, body.inputs, builder, operands, 0, stacked)

    def check(
        self,
        node: ir.Node,
        body: ir.Graph,
        inputs: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
    ) -> None:
        """Raise Refused unless ``body`` can run in the graph around it."""
        # keeps 2
        if not all(isinstance(v.type, _KNOWN) for v in (*node.outputs, *body.inputs)):
            raise Refused(f"the {node.op_type} has an optional value")
        if any(scope.carries_graphs(inner) for inner in body) and not _is_static(inputs):
            raise Refused("the body has symbolic dims of its own")
        for output, inner in zip(node.outputs, outputs, strict=True):
            if output.dtype != inner.dtype:
                raise Refused("the dtype of a result is not known")

    def run_once(
        self,
        node: ir.Node,
        body: ir.Graph,
        inputs: Sequence[ir.Value],
        builder: Builder,
        operands: Sequence[ir.Value],
        skip: int,
        stacked: int,
    ) -> None:
        """Inline ``body``, whose inputs get the values ``operands``.

        The shapes in the body are inferred again if one of its ``inputs`` has a symbolic dim.
        ``skip`` is the number of first outputs of the body that the node lacks: 1 for the condition
        of a Loop. ``stacked`` is the number of last outputs that collect a row per iteration.
        ``builder`` has made the operands, which are discarded if the body cannot be inlined.
        """
        if not _is_static(inputs):
            # Symbols of the body mean nothing outside; shapes are inferred again there.
            for inner in body:
                for result in inner.outputs:
                    self.rewriter.shapes.forget(result)
        rule = "one_step" if node.op_type == "Scan" else "one_trip"
        try:
            inline(self.rewriter, node, body, operands, skip, stacked, rule)
        except Refused:
            builder.discard()
            raise
        self.stats.fired[rule] += 1


_KNOWN = (ir.TensorType, ir.SequenceType)
"""Types of values that an inlined body may have; optional values are refused."""


def _axes(node: ir.Node, name: str, count: int) -> list[int]:
    """Return the axes in the attribute ``name`` of ``node``, by default 0 for each."""
    attribute = node.attributes.get(name)
    return list(attribute.as_ints()) if attribute is not None else [0] * count


def _is_one(value: ir.Value | None, axis: int) -> bool:
    """True if the dim of ``value`` along ``axis`` is 1."""
    shape = value.shape if value is not None else None
    return shape is not None and -len(shape) <= axis < len(shape) and shape[axis] == 1


def _constant(builder: Builder, like: ir.Value, number: np.generic) -> ir.Value:
    """Return ``number`` as a scalar, or as a vector of one element if ``like`` has rank 1."""
    vector = like.shape is not None and len(like.shape) == 1
    return builder.constant(np.full((1,) if vector else (), number))


def _is_static(inputs: Sequence[ir.Value]) -> bool:
    """True if all ``inputs`` have known sizes."""
    return all(value.shape is not None and value.shape.is_static() for value in inputs)
