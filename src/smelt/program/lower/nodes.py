"""Lowers the nodes of a graph one by one, and their subgraphs to bodies."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.ir import constants, scope
from smelt.ir.known_forms import unknown_part
from smelt.ir.operand_facts.check import misfit
from smelt.operators import find
from smelt.program.instruction import Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.extension import lower_extension
from smelt.program.lower.registry import lowering_of
from smelt.program.lower.unlowered import why_unlowered


def lower_body(
    cx: ProgramBuilder, graph: ir.Graph, types: Iterable[tuple[ir.DataType, Iterable[Dim]]]
) -> ProgramBuilder:
    """Lower ``graph``, the body of a node, and return its builder.

    Its first inputs have ``types`` (element type and shape); values that it captures from the outer
    graph follow. Raises the first Unsupported E201 of its nodes.
    """
    body = ProgramBuilder(cx.model, cx)
    inputs = []
    for value, (dtype, shape) in zip(graph.inputs, types, strict=True):
        inputs.append(body.new(dtype, shape, value.name or ""))
        body.alias(value, inputs[-1])
    violation = misfit(graph, cx.elements, cx.opset)
    if violation is not None:
        body.node, fact = violation
        raise body.refuse(f"this requirement does not hold: {fact}", "correct its operands")
    for node in graph:
        refusal = lower_node(body, node, broken=False)
        if refusal is not None:
            raise refusal
    body.program.outputs = tuple(body.slot(value) for value in graph.outputs)
    body.program.inputs = (*inputs, *body.captured.values())
    return body


def lower_node(cx: ProgramBuilder, node: ir.Node, *, broken: bool) -> Unsupported | None:
    """Lower one node; return the error if that fails, so that all errors are reported together.

    ``broken``: an earlier node failed. A node that reads its results is skipped, without an error.
    """
    if len(node.outputs) == 1 and constants.tensor_of(node.outputs[0]) is not None:
        return None  # a Constant: it gets a slot when something reads it
    cx.node = node
    try:
        read = (*node.inputs, *scope.captures(node)) if broken else ()
        if any(v is not None and not cx.has_slot(v) for v in read):
            return None  # reads what could not be lowered
        dispatch(cx, node)
    except Unsupported as error:
        return error
    return None


def dispatch(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the instructions of ``node`` by the lowering of its operator; raises Unsupported E201.

    It is refused if it has attributes or inputs that the lowering would not read.
    """
    operator = find(node.domain, node.op_type) if node.domain else None
    if operator is not None and operator.runtime and not operator.knows(node):
        raise cx.refuse(
            "it has attributes or inputs that are not declared, or lacks inputs",
            "give the node the inputs and attributes of the documentation of its runtime",
        )
    rule = lowering_of(f"{node.domain}::{node.op_type}" if node.domain else node.op_type)
    if rule is None and node.domain:
        lower_extension(cx, node)
        return
    unknown = unknown_part(node)
    if unknown:
        raise cx.refuse(
            f"it has {unknown}, which its lowering does not know", "use the target 'onnx'"
        )
    if rule is None:
        raise cx.refuse(*why_unlowered(node.op_type))
    rule(cx, node)
