"""Drop an Expand before an elementwise operator that broadcasts, or move it behind the operator.

    before   Add(x: B,H,S,S, Expand(c: 1,1,S,1))  after   Add(x, c)
    before   Where(Expand(mask), 0, low)         after   Expand(Where(mask, 0, low))

Needs    (1) in the first form, operands that together have each dim of the result, or an Expand to
         the Shape of another operand;
         (2) in the second form, only constants of one element and of no higher rank as other
         operands.
Keeps    (1) in the second form, an Expand with other readers.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.ir.walk import producer_of
from smelt.operators.elementwise import BROADCASTING, UNARY
from smelt.passes.base import EXACT, rule_pass

_ALL = tuple(sorted(BROADCASTING))


@rule(op(_ALL, var("first"), rest=True), needs=("Expand",), same_shape=True)
def broadcast_instead(m: Match, b: Builder) -> Replacement:
    """Drop the Expand: the operator broadcasts its operand to the same shape."""
    result = m.root.outputs[0].shape
    for index, value in enumerate(m.root.inputs):
        expand = producer_of(value, "Expand")
        if expand is None or expand.graph is not m.root.graph:
            continue
        others = [other for i, other in enumerate(m.root.inputs) if i != index]
        x = expand.inputs[0]
        if x is None or not (
            _expanded_to_one_of(expand, others) or _broadcast_to(result, [x, *others])  # needs 1
        ):
            return Miss("the other operands are not proved to have the dims of the result")
        inputs = [*m.root.inputs[:index], x, *m.root.inputs[index + 1 :]]
        return b.add(ir.Node("", m.root.op_type, inputs, m.root.attributes.values()))[0]
    return None


def _expanded_to_one_of(expand: ir.Node, others: list[ir.Value | None]) -> bool:
    """True if ``expand`` expands to the Shape of one of ``others``, the operator's other
    operands."""
    shape = producer_of(expand.inputs[1], "Shape")
    if shape is None or shape.attributes:  # start or end: only some of the dims
        return False
    return any(other is shape.inputs[0] for other in others)


def _broadcast_to(result: ir.Shape | None, operands: list[ir.Value | None]) -> bool:
    """True if each dim of ``result`` is a dim of one of ``operands``."""
    shapes = [operand.shape for operand in operands if operand is not None]
    if result is None or any(shape is None for shape in shapes):
        return False
    return all(
        any(
            len(shape) >= axis and same_dim(shape[-axis], result[-axis])
            for shape in shapes
            if shape is not None
        )
        for axis in range(1, len(result) + 1)
    )


@rule(op((*_ALL, *UNARY, "Cast"), var("first"), rest=True), needs=("Expand",), same_shape=True)
def expand_afterwards(m: Match, b: Builder) -> Replacement:
    """Compute on the small operand and expand the result."""
    inputs = m.root.inputs
    computed_inputs = [position for position, value in enumerate(inputs) if m.scalar(value) is None]
    walk = m.walk()
    expand = walk.up(inputs[computed_inputs[0]], "Expand") if len(computed_inputs) == 1 else None
    x = expand.inputs[0] if expand is not None else None
    if expand is None or x is None or x.shape is None:
        return None
    shapes = [
        value.shape
        for position, value in enumerate(inputs)
        if value is not None and position not in computed_inputs
    ]
    if any(shape is None or len(shape) > len(x.shape) for shape in shapes):  # needs 2
        return Miss("a constant of one element has a higher rank than the tensor before the Expand")
    refusal = m.replaces(walk)
    if refusal is not None:  # keeps 1
        return refusal
    small_inputs = [
        x if position in computed_inputs else value for position, value in enumerate(inputs)
    ]
    small_result = b.add(ir.Node("", m.root.op_type, small_inputs, m.root.attributes.values()))[0]
    return b.op("Expand", small_result, expand.inputs[1])


sink_expand = rule_pass(
    "sink_expand", __doc__, [broadcast_instead, expand_afterwards], exactness=EXACT
)
