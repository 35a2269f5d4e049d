"""Remove carried values that a loop never changes.

    before   r, s = Loop(n, c, a, b) { (i, c, p, q) => (c, p + q, q) }
    after    r = Loop(n, c, a) { (i, c, p) => (c, p + b) },  s = b

States of a Scan are handled alike. A carried value that neither the body nor any later node reads
is removed, too.

Needs    (1) a body that returns the carried value unchanged, or returns the initial value itself:
         either way the result is the initial value after any number of iterations, even zero.
Keeps    (1) a carried value that the body sets to another outer value: it differs from the
         initial value from the second iteration on; (2) values that swap places; (3) scan
         outputs, which follow the carried values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import opset, provenance, scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.node_inputs import set_input
from smelt.ir.rewrite import Rewriter
from smelt.ir.same_shape import conflicting_shapes
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@dataclass(frozen=True)
class _Form:
    """Indexes of the first carried value in the node's inputs, the body's inputs and its
    outputs."""

    node_input: int
    body_input: int
    body_output: int


_FORMS: Mapping[str, _Form] = {"Loop": _Form(2, 2, 1), "Scan": _Form(0, 0, 0)}
"""From these indexes on, inputs and outputs of node and body have the same order."""


@graph_pass(
    "loop_invariant_elimination",
    __doc__,
    exactness=EXACT,
    source="Core ML MIL: common::loop_invariant_elimination",
)
def loop_invariant_elimination(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Run over all loops, inner ones first: an outer loop may return their unchanged results."""
    if not cx.index().has(*_FORMS):
        return
    if opset.opset_of(cx.model) < 9:
        return  # Scan had another signature before opset 9.
    for graph in reversed(cx.index().graphs):
        for node in graph:
            if node.op_type not in _FORMS or node.domain or node in rewriter.dead:
                continue
            if not rewriter.exhausted:
                _Carrier(node, rewriter, stats).run()


class _Carrier:
    """One Loop or Scan, with the steps to remove its unchanged carried values."""

    def __init__(self, node: ir.Node, rewriter: Rewriter, stats: RuleStats) -> None:
        self.node = node
        self.rewriter = rewriter
        self.stats = stats
        self.form = _FORMS[node.op_type]

    def run(self) -> None:
        """Find the unchanged carried values and replace the loop by one without them."""
        body = self.node.attributes.get("body")
        if body is None or not is_known(self.node):
            return
        self.body = body.as_graph()
        carried_count = len(self.node.inputs) - self.form.node_input  # keeps 3
        carried_count -= self.node.attributes.get_int("num_scan_inputs", 0)
        body_inputs, body_outputs = len(self.body.inputs), len(self.body.outputs)
        if (
            body_inputs < self.form.body_input + carried_count
            or body_outputs < self.form.body_output + carried_count
        ):
            return
        initial_values = ((index, self.initial(index)) for index in range(carried_count))
        unchanged = {index: value for index, value in initial_values if value is not None}
        if unchanged:
            self.replace(unchanged)
            self.stats.fired["value carried unchanged"] += len(unchanged)

    def initial(self, index: int) -> ir.Value | None:
        """Return the initial value of carried value ``index`` if no iteration changes it, or if
        nothing reads it; else None."""
        initial_value = self.node.inputs[self.form.node_input + index]
        body_input = self.body.inputs[self.form.body_input + index]
        if initial_value is None:
            return None
        if self.is_unread(index):
            return initial_value
        returned = _through_identity(self.body.outputs[self.form.body_output + index])  # needs 1
        if returned is not body_input and returned is not _through_identity(
            initial_value
        ):  # keeps 1, 2
            if scope.defining_graph(returned) is not self.body:
                self.miss("the body returns an outer value other than the initial value")
            return None
        if any(
            not _may_stand_for(initial_value, v)
            for v in (body_input, *self.node.outputs[index:][:1])
        ):
            self.miss("the result and the initial value are declared differently")
            return None
        return initial_value

    def is_unread(self, index: int) -> bool:
        """True if neither the body nor a later node reads the carried value ``index``."""
        inner = self.body.inputs[self.form.body_input + index]
        return all(map(scope.is_dead, (inner, self.node.outputs[index])))

    def miss(self, why: str) -> None:
        """Record a near miss with the reason ``why``."""
        self.stats.miss("loop_invariant_elimination", why, self.node)

    def replace(self, constant: Mapping[int, ir.Value]) -> None:
        """Replace the loop by one without the carried values in ``constant``.

        The results of those carried values become their initial values.
        """
        node, form = self.node, self.form
        results: list[ir.Value | None] = [
            None if scope.is_dead(v) else constant.get(position, v)
            for position, v in enumerate(node.outputs)
        ]
        kept = [index for index in range(len(node.outputs)) if index not in constant]
        if kept:
            self.shrink(constant)
            inputs = [
                v
                for position, v in enumerate(node.inputs)
                if position - form.node_input not in constant
            ]
            attributes = [*node.attributes.values()]
            builder = self.rewriter.builder(node, [node], "loop_invariant_elimination")
            new = ir.Node("", node.op_type, inputs, attributes, num_outputs=len(kept))
            new.name = node.name
            for index, value in zip(kept, builder.add(new), strict=True):
                value.type, value.shape = node.outputs[index].type, node.outputs[index].shape
                results[index] = value
            # The new node owns the body, which must not die with the old node. The body is never
            # detached, so that its names stay taken.
            node.attributes.pop("body")
        self.rewriter.replace(node, results, trust_shape=True, rule="loop_invariant_elimination")

    def shrink(self, constant: Mapping[int, ir.Value]) -> None:
        """Remove the carried values from the body and let it read the initial values instead."""
        body, form = self.body, self.form
        carried = {
            body.inputs[form.body_input + position]: value for position, value in constant.items()
        }
        producers = [body.outputs[form.body_output + position].producer() for position in constant]
        body.outputs[:] = [
            output
            for position, output in enumerate(body.outputs)
            if position - form.body_output not in constant
        ]
        for body_input, initial in carried.items():
            for use in body_input.uses():
                set_input(use.node, use.idx, initial)
        self.return_copies(carried)
        body.inputs[:] = [value for value in body.inputs if value not in carried]
        self.rewriter.remove_dead([p for p in producers if p is not None and p.graph is body])

    def return_copies(self, carried: Mapping[ir.Value, ir.Value]) -> None:
        """Insert an Identity where the body now returns an initial value.

        A body may not return outer values.
        """
        body, rewriter = self.body, self.rewriter
        origin = provenance.merge([self.node], "loop_invariant_elimination")
        builder = Builder(rewriter.model, body, rewriter.shapes, origin=origin)
        for index, value in enumerate(body.outputs):
            if value in carried:
                copy = builder.op("Identity", carried[value])
                copy.type, copy.shape = value.type, value.shape
                body.outputs[index] = copy


def _through_identity(value: ir.Value) -> ir.Value:
    """Return the value that ``value`` copies through any number of Identity nodes.

    ``is_known`` rejects an Identity with inputs or attributes that a later opset may add: it might
    compute more than a copy.
    """
    node = value.producer()
    while node is not None and (node.domain, node.op_type) == ("", "Identity") and is_known(node):
        source = node.inputs[0]
        if source is None:
            break
        value, node = source, source.producer()
    return value


def _may_stand_for(value: ir.Value, other: ir.Value) -> bool:
    """False if the two values have conflicting dtypes or shapes, as in an invalid model."""
    have_dtypes = value.dtype is not None and other.dtype is not None
    return not (
        (have_dtypes and value.dtype != other.dtype) or conflicting_shapes(value.shape, other.shape)
    )
