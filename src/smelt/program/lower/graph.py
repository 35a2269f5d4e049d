"""Lower a whole graph, and report everything that cannot be lowered at once."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir import constants, scope
from smelt.ir.known_forms import unknown_part
from smelt.program.instruction import Program
from smelt.program.lower.extension import lower_extension
from smelt.program.lower.lowering import Lowering, lowering_of

OLDEST_OPSET = 7
"""Before it, binary operators broadcast by attributes."""


def lower(model: ir.Model) -> Program:
    """The Program of ``model``, whose values must have known dtypes and ranks.

    Needs inlined functions and no control flow. Symbolic dims stay symbolic in the slots. Raises
    an ErrorList of Unsupported E201, one for each node that cannot be lowered.
    """
    cx = Lowering(model)
    errors: list[Unsupported] = []
    if cx.opset < OLDEST_OPSET:
        raise Unsupported(
            "E201",
            f"opset {cx.opset} cannot be lowered",
            why=f"operators changed their meaning in opset {OLDEST_OPSET}",
            fix="convert the model to a newer opset first",
        )
    for value in model.graph.inputs:
        try:
            cx.define(value)
        except Unsupported as error:
            errors.append(error)
    for node in model.graph:
        refusal = _lower_node(cx, node, broken=bool(errors))
        if refusal is not None:
            errors.append(refusal)
    if errors:
        raise ErrorList(errors)
    cx.program.inputs = tuple(cx.slot(value) for value in model.graph.inputs)
    cx.program.outputs = tuple(cx.slot(value) for value in model.graph.outputs)
    return cx.program


def lower_alone(model: ir.Model, node: ir.Node) -> Program:
    """The Program of ``node`` alone, which takes what the node does but for its constants.

    Raises Unsupported E201 if the node cannot be lowered.
    """
    cx = Lowering(model)
    cx.node = node
    given = dict.fromkeys(v for v in node.inputs if v is not None and not cx.has_slot(v))
    cx.program.inputs = tuple(cx.define(value) for value in given)
    _dispatch(cx, node)
    cx.program.outputs = tuple(cx.slot(v) for v in node.outputs if cx.has_slot(v))
    return cx.program


def _lower_node(cx: Lowering, node: ir.Node, *, broken: bool) -> Unsupported | None:
    """Lower one node; after a failure its results get slots, so that later nodes are seen too."""
    if len(node.outputs) == 1 and constants.tensor_of(node.outputs[0]) is not None:
        return None  # a Constant: it gets a slot when something reads it
    cx.node = node
    try:
        if broken and any(v is not None and not cx.has_slot(v) for v in node.inputs):
            return None  # reads what could not be lowered
        _dispatch(cx, node)
    except Unsupported as error:
        return error
    return None


def _dispatch(cx: Lowering, node: ir.Node) -> None:
    if any(True for _ in scope.subgraphs(node)):
        raise cx.refuse("a Program has no control flow", "use the target 'onnx' or 'ort'")
    if node.domain:
        lower_extension(cx, node)
        return
    unknown = unknown_part(node)
    if unknown:
        raise cx.refuse(
            f"it has {unknown}, which its lowering does not know", "use the target 'onnx'"
        )
    rule = lowering_of(node.op_type)
    if rule is None:
        raise cx.refuse(
            "no lowering is registered for this operator",
            "end the graph before it, or use the target 'onnx'",
        )
    rule(cx, node)
