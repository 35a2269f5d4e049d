"""Take what a loop carries unchanged out of it.

    before   r, s = Loop(n, c, a, b) { (i, c, p, q) => (c, p + q, q) }
    after    r = Loop(n, c, a) { (i, c, p) => (c, p + b) },  s = b

The same for the states of a Scan. What is carried, but read by no round and by nothing after the
last, goes, too.

Needs    (1) a body that returns the carried value as it got it, or the very value that the loop
         starts it with: both hold the initial value after any number of rounds, none included.
Keeps    (1) a carried value that becomes another outer value, which it is only after the first
         round; (2) values that trade places; (3) results of each round, which come after those
         carried.
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
    """Where the first carried value stands among inputs, body inputs and body outputs."""

    node_input: int
    body_input: int
    body_output: int


_FORMS: Mapping[str, _Form] = {"Loop": _Form(2, 2, 1), "Scan": _Form(0, 0, 0)}
"""The inputs and outputs of a node and those of its body keep their order from there on."""


@graph_pass(
    "loop_invariant_elimination",
    __doc__,
    exactness=EXACT,
    source="Core ML MIL: common::loop_invariant_elimination",
)
def loop_invariant_elimination(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Inner loops first: what they return unchanged may be what the loop around them returns."""
    if not cx.index().has(*_FORMS):
        return
    if opset.opset_of(cx.model) < 9:
        return  # Scan had another form.
    for graph in reversed(cx.index().graphs):
        for node in graph:
            if node.op_type not in _FORMS or node.domain or node in rewriter.dead:
                continue
            if not rewriter.exhausted:
                _Carrier(node, rewriter, stats).run()


class _Carrier:
    """One Loop or Scan."""

    def __init__(self, node: ir.Node, rewriter: Rewriter, stats: RuleStats) -> None:
        self.node = node
        self.rewriter = rewriter
        self.stats = stats
        self.form = _FORMS[node.op_type]

    def run(self) -> None:
        body = self.node.attributes.get("body")
        if body is None or not is_known(self.node):
            return
        self.body = body.as_graph()
        carried = len(self.node.inputs) - self.form.node_input  # keeps 3
        carried -= self.node.attributes.get_int("num_scan_inputs", 0)
        given, returned = len(self.body.inputs), len(self.body.outputs)
        if given < self.form.body_input + carried or returned < self.form.body_output + carried:
            return
        found = ((index, self.initial(index)) for index in range(carried))
        constant = {index: value for index, value in found if value is not None}
        if constant:
            self.replace(constant)
            self.stats.fired["value carried unchanged"] += len(constant)

    def initial(self, index: int) -> ir.Value | None:
        """The initial value of the carried value ``index``, if it never becomes another."""
        initial = self.node.inputs[self.form.node_input + index]
        inner = self.body.inputs[self.form.body_input + index]
        if initial is None:
            return None
        if self.is_unread(index):
            return initial
        returned = _through_identity(self.body.outputs[self.form.body_output + index])  # needs 1
        if returned is not inner and returned is not _through_identity(initial):  # keeps 1, 2
            if scope.home(returned) is not self.body:
                self.miss("the body returns an outer value that the loop does not start with")
            return None
        if any(not _may_stand_for(initial, v) for v in (inner, *self.node.outputs[index:][:1])):
            self.miss("the result is not declared as the initial value is")
            return None
        return initial

    def is_unread(self, index: int) -> bool:
        """True if neither a round nor anything after the last reads the value (needs 2)."""
        inner = self.body.inputs[self.form.body_input + index]
        return all(map(scope.is_dead, (inner, self.node.outputs[index])))

    def miss(self, why: str) -> None:
        self.stats.miss("loop_invariant_elimination", why, self.node)

    def replace(self, constant: Mapping[int, ir.Value]) -> None:
        """Carry only the rest, and let the initial values stand for the others."""
        node, form = self.node, self.form
        results: list[ir.Value | None] = [
            None if scope.is_dead(v) else constant.get(i, v) for i, v in enumerate(node.outputs)
        ]
        left = [index for index in range(len(node.outputs)) if index not in constant]
        if left:
            self.shrink(constant)
            inputs = [v for i, v in enumerate(node.inputs) if i - form.node_input not in constant]
            attributes = [*node.attributes.values()]
            builder = self.rewriter.builder(node, [node], "loop_invariant_elimination")
            new = ir.Node("", node.op_type, inputs, attributes, num_outputs=len(left))
            new.name = node.name
            for index, value in zip(left, builder.add(new), strict=True):
                value.type, value.shape = node.outputs[index].type, node.outputs[index].shape
                results[index] = value
            # The body belongs to the new node, so that it does not die with the old one. It stays
            # in the graph all the time, or names in it would seem free.
            node.attributes.pop("body")
        self.rewriter.replace(node, results, trust_shape=True, rule="loop_invariant_elimination")

    def shrink(self, constant: Mapping[int, ir.Value]) -> None:
        """Take the carried values out of the body, which reads the initial ones instead."""
        body, form = self.body, self.form
        carried = {body.inputs[form.body_input + i]: value for i, value in constant.items()}
        gone = [body.outputs[form.body_output + i].producer() for i in constant]
        body.outputs[:] = [
            v for i, v in enumerate(body.outputs) if i - form.body_output not in constant
        ]
        for inner, initial in carried.items():
            for use in inner.uses():
                set_input(use.node, use.idx, initial)
        self.return_copies(carried)
        body.inputs[:] = [value for value in body.inputs if value not in carried]
        self.rewriter.remove_dead([p for p in gone if p is not None and p.graph is body])

    def return_copies(self, carried: Mapping[ir.Value, ir.Value]) -> None:
        """A body returns what it computes: a copy of an initial value, never that itself."""
        body, rewriter = self.body, self.rewriter
        origin = provenance.merge([self.node], "loop_invariant_elimination")
        builder = Builder(rewriter.model, body, rewriter.shapes, origin=origin)
        for index, value in enumerate(body.outputs):
            if value in carried:
                copy = builder.op("Identity", carried[value])
                copy.type, copy.shape = value.type, value.shape
                body.outputs[index] = copy


def _through_identity(value: ir.Value) -> ir.Value:
    """What ``value`` is a copy of."""
    node = value.producer()
    while node is not None and (node.domain, node.op_type) == ("", "Identity") and is_known(node):
        source = node.inputs[0]
        if source is None:
            break
        value, node = source, source.producer()
    return value


def _may_stand_for(value: ir.Value, other: ir.Value) -> bool:
    """False if dtype or shape are declared otherwise, as in a model that is wrong itself."""
    known = value.dtype is not None and other.dtype is not None
    return not (
        (known and value.dtype != other.dtype) or conflicting_shapes(value.shape, other.shape)
    )
