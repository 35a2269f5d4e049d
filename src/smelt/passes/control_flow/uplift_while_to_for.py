"""Give a loop a constant trip count if its condition only counts iterations.

    before   Loop(none, true, 0, x) { (k, c, i, p) => j = i + 1, (j < 5, j, f(p, i)) }
    after    Loop(5, none, 0, x)    { (k, c, i, p) => j = i + 1, (c, j, f(p, i)) }

Frameworks without counted loops write one that runs while a counter is below a limit; Keras does so
for recurrent layers. Scan outputs have known sizes only if the trip count is known, and the runtime
then does not have to evaluate the condition.

Needs    (1) an initial condition of true; (2) comparisons of numbers that grow by a constant in
         each iteration, one or several joined by And; (3) integers that their types, also floats,
         hold exactly until the loop ends; (4) no trip count, or a constant one.
Keeps    (1) a data-dependent condition; (2) loops that end by their trip count alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import provenance
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.loop_rounds import MOST
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

RULE = "counted"

MOST_VALUES = 64
"""The most values of a body that are examined; counting conditions have a few."""

Line: TypeAlias = tuple[int, int]
"""Slope and start of a number that is ``slope * k + start`` in iteration k, counted from 0."""

_EXACT: Mapping[ir.DataType, int] = {
    ir.DataType.INT32: 2**31 - 1,
    ir.DataType.INT64: 2**63 - 1,
    ir.DataType.FLOAT: 2**24,
    ir.DataType.DOUBLE: 2**53,
}
"""The largest magnitude up to which a type holds every integer."""

_COMPARED: Mapping[str, tuple[int, int]] = {
    "Less": (1, 0),
    "LessOrEqual": (1, 1),
    "Greater": (-1, 0),
    "GreaterOrEqual": (-1, 1),
}
"""``(sign, limit)``: the comparison is ``sign * (left - right) < limit``."""


@graph_pass("uplift_while_to_for", __doc__, exactness=EXACT, source="MLIR: scf-uplift-while-to-for")
def uplift_while_to_for(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Set the trip count of every loop whose condition only counts."""
    for node in cx.index().nodes([("", "Loop")]):
        body = node.attributes.get("body")
        if node in rewriter.dead or rewriter.exhausted or body is None or not is_known(node):
            continue
        trip_count = _Counter(node, body.as_graph(), cx.constants).trip_count()
        if trip_count is not None:
            _replace_by_counted(node, body.as_graph(), trip_count, rewriter)
            stats.fired[RULE] += 1


def _replace_by_counted(node: ir.Node, body: ir.Graph, trip_count: int, rewriter: Rewriter) -> None:
    """Replace the loop by one that runs ``trip_count`` times; its body returns its condition
    unchanged."""
    origin = provenance.merge([node], RULE)
    condition = body.outputs[0]
    body_builder = Builder(rewriter.model, body, rewriter.shapes, origin=origin)
    body.outputs[0] = body_builder.op("Identity", body.inputs[1])
    builder = rewriter.builder(node, [node], RULE)
    inputs = [builder.constant(np.asarray(trip_count, np.int64)), None, *node.inputs[2:]]
    attributes = [*node.attributes.values()]
    loop = ir.Node("", "Loop", inputs, attributes, num_outputs=len(node.outputs), name=node.name)
    stacked = len(node.inputs) - 2
    for index, value in enumerate(builder.add(loop)):
        value.type, value.shape = node.outputs[index].type, node.outputs[index].shape
        if index >= stacked and value.shape is not None and len(value.shape):
            value.shape = ir.Shape([trip_count, *value.shape.dims[1:]])
    # The new node owns the body; it must not die with the old node.
    node.attributes.pop("body")
    rewriter.replace(node, list(loop.outputs), trust_shape=True, rule=RULE)
    producer = condition.producer()
    if producer is not None:
        rewriter.remove_dead([producer])


class _Counter:
    """Analyzes the numbers that the condition of one Loop compares.

    ``lines``: each number on the way to the comparisons, with the largest magnitude that its type
    holds exactly. ``trip_count`` checks that no number exceeds it in any iteration.
    ``values_left``: how many more values may be examined.
    """

    def __init__(self, node: ir.Node, body: ir.Graph, constants: Constants) -> None:
        """Analyze the Loop ``node`` with ``body``."""
        self.node = node
        self.body = body
        self.constants = constants
        self.lines: list[tuple[Line, int]] = []
        self.values_left = MOST_VALUES

    def trip_count(self) -> int | None:
        """Return the number of iterations, else None.

        The condition must determine it, together with a constant trip count if the loop has one.
        """
        count, first = self.node.inputs[:2]
        if first is not None and self.constants.scalar(first) is not True:  # needs 1
            return None
        trip_limit = MOST if count is None else self.constants.scalar(count)  # needs 4
        first_false = self.first_false_iteration(self.body.outputs[0])
        if (
            first_false is None or first_false == math.inf or not isinstance(trip_limit, int)
        ):  # keeps 1, 2
            return None
        last = max(0, min(int(first_false), trip_limit))
        are_exact = all(  # needs 3
            max(abs(start), abs(slope * last + start)) <= largest_exact
            for (slope, start), largest_exact in self.lines
        )
        return last if are_exact and last < MOST else None

    def first_false_iteration(self, condition: ir.Value) -> float | None:
        """Return the iteration, counted from 1, that first makes ``condition`` false.

        Infinity if none does; None if the condition is data-dependent.
        """
        self.values_left -= 1
        node = condition.producer()
        if condition is self.body.inputs[1]:
            return math.inf
        if node is None or node.graph is not self.body:
            truth = self.constants.scalar(condition)
            if truth is None:
                return None
            return math.inf if truth else 1
        if node.domain or not is_known(node) or self.values_left < 0:
            return None
        if node.op_type in ("And", "Identity"):
            ends = [
                None if term is None else self.first_false_iteration(term) for term in node.inputs
            ]
            known_ends = [end for end in ends if end is not None]
            return min(known_ends) if len(known_ends) == len(ends) else None
        return self.compared(node)

    def compared(self, node: ir.Node) -> float | None:  # needs 2
        """Return the iteration, counted from 1, that first makes the comparison ``node`` false.

        Infinity if none does; None if an operand is no linear function of the iteration. The first
        iteration has k = 0, so a line that reaches the limit at k is false in iteration k + 1.
        """
        if node.op_type not in _COMPARED or None in node.inputs:
            return None
        left, right = (self.line(value) for value in node.inputs if value is not None)
        if left is None or right is None:
            return None
        sign, limit = _COMPARED[node.op_type]
        slope, start = sign * (left[0] - right[0]), sign * (left[1] - right[1])
        if start >= limit:
            return 1
        return 1 - (start - limit) // slope if slope > 0 else math.inf

    def line(self, value: ir.Value) -> Line | None:
        """Return ``value`` as a linear function of the iteration; None if it is none.

        The line is recorded in ``lines``, because its numbers must be exact until the loop ends,
        which is known later. None, too, once ``MOST_VALUES`` are examined, and for types
        without an entry in ``_EXACT``.
        """
        self.values_left -= 1
        if self.values_left < 0:
            return None
        line = self.unchecked_line(value)
        largest_exact = _EXACT.get(value.dtype or ir.DataType.UNDEFINED)
        if line is None or largest_exact is None:
            return None
        self.lines.append((line, largest_exact))
        return line

    def unchecked_line(self, value: ir.Value) -> Line | None:
        """Return the line of ``value`` from its constant, its state or its producer, else None.

        A line (slope, start) is the number ``slope * iteration + start``. Whether the type of
        ``value`` holds the numbers is not checked.
        """
        number = self.constants.scalar(value)
        if number is not None:
            return (0, int(number)) if float(number).is_integer() else None
        if value is self.body.inputs[0]:
            return (1, 0)
        if value in self.body.inputs[2:]:
            return self.state(self.body.inputs.index(value))
        node = value.producer()
        if node is None or node.graph is not self.body or node.domain or not is_known(node):
            return None
        lines = [None if operand is None else self.line(operand) for operand in node.inputs]
        known_lines = [line for line in lines if line is not None]
        if len(known_lines) != len(lines):
            return None
        if node.op_type in ("Identity", "Cast"):
            return known_lines[0]
        if node.op_type in ("Add", "Sub"):
            (slope, start), (other_slope, other_start) = known_lines
            return (
                (slope + other_slope, start + other_start)
                if node.op_type == "Add"
                else (slope - other_slope, start - other_start)
            )
        return None

    def state(self, index: int) -> Line | None:
        """Return the line of state ``index`` if each iteration adds a constant to it, else None."""
        start = self.constants.scalar(self.node.inputs[index])
        step = self.step(self.body.outputs[index - 1], self.body.inputs[index])
        if step is None or not isinstance(start, int) or isinstance(start, bool):
            return None
        return step, start

    def step(self, value: ir.Value, carried: ir.Value) -> int | None:
        """Return the constant that is added to ``carried`` to give ``value``, else None.

        Also None once ``MOST_VALUES`` are examined.
        """
        node = value.producer()
        if node is None or node.domain or not is_known(node):
            return None
        if node.op_type == "Identity" and node.inputs[0] is not None:
            self.values_left -= 1
            return self.step(node.inputs[0], carried) if self.values_left >= 0 else None
        if node.op_type not in ("Add", "Sub") or carried not in node.inputs:
            return None
        first, second = node.inputs
        number = self.constants.scalar(second if first is carried else first)
        if not isinstance(number, int) or isinstance(number, bool):
            return None
        if node.op_type == "Sub":
            return -number if first is carried else None
        return number
