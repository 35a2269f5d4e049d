"""Give a scalar loop state rank 1 if later iterations hold a vector of one element in it.

    before   y = Loop(n, c, s[]) { (i, c, p) => (d, Cast(Add(p, t[1]))) }
    after    y = Loop(n, c, Unsqueeze(s)[1]) { (i, c, p) => (d, Cast(Add(p, t[1]))) }

Paddle's exporter writes such loops, and memory is planned for tensors of a fixed rank. The readers
in the body compute the same from a vector of one element, because they broadcast it against a
vector before any other operator reads it.

Needs    (1) a state that starts as a scalar; (2) a body that returns a tensor of rank 1 for it,
         derived from elementwise operators; (3) elementwise readers in the body, up to one that
         broadcasts against a tensor of rank 1 or more.
Keeps    (1) a Loop that may run zero iterations, because its result is then the scalar; (2) a
         state that the body returns unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.known_forms import is_known
from smelt.ir.loop_rounds import runs_at_least_once
from smelt.ir.node_inputs import set_input
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.operators.elementwise import BROADCASTING, FIRST_ONLY
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

NAME = "level_loop_states"
FIRST_STATE = 2
"""Index of the first state in the inputs of a Loop and of its body; in the outputs it is one
less."""


@graph_pass(NAME, __doc__, exactness=EXACT, default=False)
def level_loop_states(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Unsqueeze the scalars that later iterations replace by vectors; infer the shapes again."""
    changed = False
    for node in cx.index().nodes([("", "Loop")]):
        if node.graph is None or not is_known(node) or not runs_at_least_once(node):  # keeps 1
            continue
        body = node.attributes["body"].as_graph()
        for place in _scalars_at_first(node, body):
            if rewriter.exhausted:
                break
            builder = rewriter.builder(node, [node], NAME)
            front = builder.const_i64([0])
            set_input(node, place, builder.op("Unsqueeze", node.inputs[place], front))
            stats.fired[NAME] += 1
            rewriter.count += 1
            changed = True
    if changed:
        cx.shapes.infer_model()


def _scalars_at_first(node: ir.Node, body: ir.Graph) -> list[int]:
    """Return the input indexes of states that start as scalars and become vectors of one
    element."""
    inputs = []
    ranks = _Ranks(node, body)
    for index in range(FIRST_STATE, len(node.inputs)):
        start = node.inputs[index]
        if start is None or start.shape is None or len(start.shape) != 0:  # needs 1
            continue
        after = body.outputs[index - 1]
        if ranks.of(after) == 1 and _is_same_for_a_vector(body.inputs[index], ranks):  # needs 2
            inputs.append(index)
    return inputs


def _is_same_for_a_vector(value: ir.Value, ranks: _Ranks) -> bool:
    """True if all readers of the scalar ``value`` give the same for a vector of one element.

    Their results may be vectors of one element, too; ``vectors`` collects these, whose readers are
    checked likewise, up to an operator that broadcasts them to a rank of 1 or more anyway.
    """
    pending, vectors = [value], {value}
    while pending:
        vector = pending.pop()
        if vector.is_graph_output():  # keeps 2
            return False
        for reader in vector.consumers():
            op_type = reader.op_type
            if reader.domain or op_type not in FIRST_ONLY | BROADCASTING:  # needs 3
                return False
            other_inputs = [x for x in reader.inputs if x is not None and x not in vectors]
            if op_type in FIRST_ONLY and reader.inputs[0] is not vector:
                return False
            if op_type in BROADCASTING and any(ranks.of(other) for other in other_inputs):
                continue
            new_vectors = [result for result in reader.outputs if result not in vectors]
            pending += new_vectors
            vectors.update(new_vectors)
    return True


class _Ranks:
    """Ranks of a body's values in the first iteration, through elementwise operators and Ifs.

    Shape inference does not know the shapes in a body whose state changes shape.
    """

    def __init__(self, node: ir.Node, body: ir.Graph) -> None:
        """Note the ranks of the initial states of a loop; other ranks follow from them."""
        self._known: dict[ir.Value, int | None] = {
            inner: _rank(start)
            for inner, start in zip(body.inputs[FIRST_STATE:], node.inputs[2:], strict=True)
        }

    def of(self, value: ir.Value) -> int | None:
        """Return the rank of ``value``; None if it is unknown.

        The stack ``pending`` holds values whose rank waits for the ranks of their operands.
        """
        pending = [value]
        while pending:
            last = pending[-1]
            unseen = [source for source in self._read(last) if source not in self._known]
            if last in self._known or not unseen:
                pending.pop()
                if last not in self._known:
                    self._known[last] = self._computed(last)
            else:
                pending += unseen
        return self._known[value]

    def _read(self, value: ir.Value) -> Sequence[ir.Value]:
        """Return the values that determine the rank of ``value``."""
        node = value.producer()
        if node is None or node.domain or _rank(value) is not None:
            return ()
        if node.op_type in FIRST_ONLY:
            return [operand for operand in node.inputs[:1] if operand is not None]
        if node.op_type in BROADCASTING:
            return [operand for operand in node.inputs if operand is not None]
        if node.op_type == "If":
            branches = (node.attributes.get(name) for name in ("then_branch", "else_branch"))
            graphs = [branch.as_graph() for branch in branches if branch is not None]
            return [graph.outputs[value.index() or 0] for graph in graphs]
        return ()

    def _computed(self, value: ir.Value) -> int | None:
        """Return the rank of ``value`` from the known ranks of its operands; None if one is
        unknown.

        The operands of an If are the results of its branches, whose ranks must agree.
        """
        rank = _rank(value)
        if rank is not None:
            return rank
        ranks = [self._known[source] for source in self._read(value)]
        if not ranks or None in ranks:
            return None
        known_ranks = [rank for rank in ranks if rank is not None]
        node = value.producer()
        same = len(set(known_ranks)) == 1
        return max(known_ranks) if same or (node is not None and node.op_type != "If") else None


def _rank(value: ir.Value | None) -> int | None:
    """Return the rank of ``value``; None if it is missing or has no known shape."""
    return None if value is None or value.shape is None else len(value.shape)
