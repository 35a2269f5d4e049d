"""Refuses a model with a node that must fail because of the shapes of its operands."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.loop_rounds import trip_count
from smelt.ir.operand_facts import (
    indices,
    layers,
    loops,
    moves,
    products,
    quantized,
    recurrent,
    sequences,
    signals,
    texts,
    windows,
)
from smelt.ir.operand_facts.operands import Elements, Fact, Operands, Unknown
from smelt.ir.shapes.contradiction import contradiction
from smelt.ir.shapes.inference import ShapeInference

OLDEST = 7
"""The first opset with today's broadcasting, to which the tables apply."""

SUBJECTS = (
    *(products, windows, moves, indices, layers, recurrent, signals, quantized),
    *(loops, sequences, texts),
)

WHAT = "a node contradicts its operator"

FACTS: dict[str, tuple[Fact, ...]] = {
    op_type: facts
    for subject in SUBJECTS
    for op_types, facts in subject.FACTS.items()
    for op_type in op_types.split()
}


def refuse_misfits(model: ir.Model, shapes: ShapeInference) -> None:
    """Raise InvalidModel E317 if the operands of a node violate a requirement of its operator.

    Skips nodes that may never run: in branches, in bodies of loops that may run no iteration, and
    nodes that no result needs.
    """
    version = opset.opset_of(model)
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        contradicted = misfit(graph, shapes.elements, version)
        if contradicted is not None:
            raise contradiction(
                contradicted[0], f"this requirement does not hold: {contradicted[1]}", WHAT
            )
        for node in graph:
            if node.op_type == "Loop" and not node.domain and trip_count(node):
                pending.extend(scope.subgraphs(node))


def misfit(graph: ir.Graph, elements: Elements, version: int) -> tuple[ir.Node, str] | None:
    """Return a node of ``graph`` that must fail and the requirement it violates, or None.

    Only nodes that an output needs count; subgraphs are skipped.
    """
    if version < OLDEST:
        return None
    needed: set[ir.Node] | None = None
    for node in graph:
        facts = FACTS.get(node.op_type)
        if facts is None or node.domain:
            continue
        fact = _first_violation(facts, Operands(node, elements, version))
        if fact:
            needed = _needed_nodes(graph) if needed is None else needed
            if node in needed:
                return node, fact
    return None


def _first_violation(facts: tuple[Fact, ...], operands: Operands) -> str:
    """Return the first requirement that does not hold, or an empty text."""
    for fact, holds in facts:
        try:
            if not holds(operands):
                return fact
        except (Unknown, IndexError):  # another row reports a wrong axis
            continue
    return ""


def _needed_nodes(graph: ir.Graph) -> set[ir.Node]:
    """Return the nodes of ``graph`` on which its outputs depend."""
    needed: set[ir.Node] = set()
    pending = list(graph.outputs)
    while pending:
        node = pending.pop().producer()
        if node is None or node in needed:
            continue
        needed.add(node)
        pending.extend(value for value in node.inputs if value is not None)
        pending.extend(scope.captures(node))
    return needed
