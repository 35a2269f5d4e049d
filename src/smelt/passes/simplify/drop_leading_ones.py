"""Drop leading dims of size 1 before an operator that broadcasts to them anyway.

    before   And(shown: B,1,S,S, Unsqueeze(c: S,S, [0, 1]): 1,1,S,S) ─> y
    after    And(shown, c) ─> y

    before   Add(words: B,S,D, Gather(table, Unsqueeze(places: S, [0])): 1,S,D) ─> y
    after    Add(words, Gather(table, places): S,D) ─> y

PyTorch unsqueezes the positions of tokens in this way, for embeddings and for masks.

Needs    (1) another operand with as many dims as the result; (2) an Unsqueeze or a Reshape that
         inserts nothing but leading dims of size 1; (3) in the second form, rows along axis 0, and
         a Gather with one reader.
Keeps    (1) dims that give the result its rank.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.operators.elementwise import BROADCASTING
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.simplify.merge_consecutive_reshapes import inserted

_ALL = tuple(sorted(BROADCASTING))


@rule(op(_ALL, var("first"), rest=True), needs=(*RESHAPES, "Gather"), same_shape=True)
def leading_ones(m: Match, b: Builder) -> Replacement:
    """Let the operator read an operand without the leading dims of size 1."""
    result = m.root.outputs[0].shape
    if result is None or not is_known(m.root):
        return None
    miss = None
    for index, value in enumerate(m.root.inputs):
        operand_and_gather = _without_ones(value, m.root.graph)
        if operand_and_gather is None:
            continue
        others = [
            other
            for position, other in enumerate(m.root.inputs)
            if position != index and other is not None
        ]
        if not any(
            other.shape is not None and len(other.shape) == len(result) for other in others
        ):  # needs 1
            miss = Miss("no other operand has the rank of the result")  # keeps 1
            continue
        x, gather = operand_and_gather
        if gather is not None:
            x = b.like(gather, gather.inputs[0], x)
        inputs = [*m.root.inputs[:index], x, *m.root.inputs[index + 1 :]]
        return b.like(m.root, *inputs)
    return miss


def _without_ones(
    value: ir.Value | None, graph: ir.Graph | ir.Function | None
) -> tuple[ir.Value, ir.Node | None] | None:
    """Return the value that an Unsqueeze or Reshape turns into ``value`` by leading dims of size 1.

    A Gather may be between them: then ``value`` is its result, and the Gather is returned, too.
    None if there is no such value in this graph.
    """
    node = None if value is None else value.producer()
    if value is None or node is None or node.graph is not graph or node.domain:
        return None
    if node.op_type == "Gather":
        if not scope.has_one_use(value) or value.is_graph_output():  # needs 3
            return None
        if node.attributes.get_int("axis", 0) or not is_known(node):
            return None
        operand_and_gather = _without_ones(node.inputs[1], graph)
        return (
            None
            if operand_and_gather is None or operand_and_gather[1] is not None
            else (operand_and_gather[0], node)
        )
    if node.op_type not in RESHAPES or not is_known(node):
        return None
    x = node.inputs[0]
    axes = None if x is None else inserted(x.shape, value.shape)
    if x is None or not axes or axes != tuple(range(len(axes))):  # needs 2
        return None
    return x, None


drop_leading_ones = rule_pass("drop_leading_ones", __doc__, [leading_ones], exactness=EXACT)
"""Leading dims of 1 before operators that broadcast are dropped."""
