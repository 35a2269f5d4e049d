"""Note nodes that must fail for the given sizes, in branches that a run may skip.

A branch of an If may serve other sizes than those that ``--dim`` binds; its operands then
contradict each other. The model is valid, because only a run that takes the branch fails. ONNX
Runtime refuses to load such a model, so smelt writes none for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.loop_rounds import runs_at_least_once
from smelt.ir.shapes.contradiction import contradiction

_WHY = "smelt.ruled_out"
FIX = (
    "correct this branch; or keep the sizes symbolic that only the other branch accepts; or "
    "compile for c or host, where only a run that takes this branch fails"
)


def rule_out(model: ir.Model, node: ir.Node, why: str) -> bool:
    """Note that ``node`` must fail, for the reason ``why``, and return True.

    Return False, and note nothing, if every run computes the node, or if it is noted already.
    """
    if _WHY in node.meta or node not in set(_nodes_that_may_be_skipped(model)):
        return False
    node.meta[_WHY] = why
    model.graph.meta[_WHY] = True
    for output in node.outputs:
        output.shape = None
    return True


def forget_ruled_out(model: ir.Model) -> None:
    """Remove the notes, because sizes of inputs may have changed."""
    if model.graph.meta.pop(_WHY, False):
        for node in scope.nodes(model):
            node.meta.pop(_WHY, None)


def why_ruled_out(node: ir.Node) -> str:
    """Return the reason why ``node`` must fail, as noted by ``rule_out``; empty if it need not."""
    return str(node.meta.get(_WHY, ""))


def ruled_out_in(graph: ir.Graph) -> tuple[ir.Node, str] | None:
    """Return the first node of ``graph`` that must fail, with the reason; None if there is none."""
    for node in graph:
        why = why_ruled_out(node)
        if why:
            return node, why
    return None


def refuse_ruled_out(model: ir.Model) -> None:
    """Raise InvalidModel E317 if a node must fail, because runtimes refuse to load such a model.

    Its branch may have been inlined since, so that the node is now in the main graph.
    """
    if not model.graph.meta.get(_WHY):
        return
    for node in scope.nodes(model):
        if _WHY in node.meta:
            raise contradiction(node, why_ruled_out(node), fix=FIX)


def _nodes_that_may_be_skipped(model: ir.Model) -> Iterator[ir.Node]:
    """Yield the nodes that a run may skip: in branches, and in loops that may run no iteration."""
    for graph in scope.graphs(model):
        for node in graph:
            if node.op_type == "If" or (node.op_type == "Loop" and not runs_at_least_once(node)):
                yield from scope.nested_nodes(node)
