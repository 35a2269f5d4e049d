"""Lowers a whole graph; all nodes that cannot be lowered are reported together."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir import scope
from smelt.program.instruction import Program
from smelt.program.lower.builder import ProgramBuilder, Supports, supports_none
from smelt.program.lower.nodes import dispatch, lower_node

OLDEST_OPSET = 7
"""Before this opset, binary operators broadcast by attributes."""


def lower(model: ir.Model, supports: Supports = supports_none) -> Program:
    """Return the Program of ``model``, whose values must have known dtypes and ranks.

    ``supports`` says for which instructions the target has a kernel that other targets lack.
    Functions must be inlined. Symbolic dims stay symbolic in the slots. Raises an ErrorList of
    Unsupported E201, one per node that cannot be lowered.
    """
    cx = ProgramBuilder(model, supports=supports)
    errors: list[Unsupported] = []
    if "" in model.opset_imports and cx.opset < OLDEST_OPSET:
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
        refusal = lower_node(cx, node, broken=bool(errors))
        if refusal is not None:
            errors.append(refusal)
    if errors:
        raise ErrorList(errors)
    cx.program.inputs = tuple(cx.slot(value) for value in model.graph.inputs)
    cx.program.outputs = tuple(cx.slot(value) for value in model.graph.outputs)
    return cx.program


def lower_alone(model: ir.Model, node: ir.Node, supports: Supports = supports_none) -> Program:
    """Return the Program of ``node`` alone, whose inputs are its operands that are not constant.

    ``supports`` is that of ``lower``. Raises Unsupported E201 if the node cannot be lowered.
    """
    cx = ProgramBuilder(model, supports=supports)
    cx.node = node
    read = (*node.inputs, *scope.captures(node))
    inputs = dict.fromkeys(v for v in read if v is not None and not cx.has_slot(v))
    cx.program.inputs = tuple(cx.define(value) for value in inputs)
    dispatch(cx, node)
    cx.program.outputs = tuple(cx.slot(v) for v in node.outputs if cx.has_slot(v))
    return cx.program
