"""Compute the logits of the last token of a call alone.

    before   MatMul(hidden, table) ─> logits, float[B,S,V]
    after    MatMul(Slice(hidden, S - 1, S), table) ─> logits, float[B,1,V]

A prompt of 500 tokens needs one row of logits. The Slice moves up over operators that compute each
row by itself.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN as MICROSOFT

_ROWWISE = frozenset({"MatMul", "MatMulNBits", "Add", "Mul", "Div", "Tanh", "Cast", "Identity"})
"""Operators that compute a row of the result from that row of one operand, and from constants."""

_END = (1 << 63) - 1
"""The end of a Slice that reaches to the last row."""


def keep_last_row(model: ir.Model, logits: str) -> None:
    """Let the output ``logits`` of ``model``, float[B,S,V], hold the last row along S alone."""
    graph = model.graph
    output = next(value for value in graph.outputs if value.name == logits)
    chain: list[ir.Node] = []
    value = output
    while (node := _row_by_row(value)) is not None:
        chain.append(node)
        value = _operand(node)
    b = Builder(model, graph, ShapeInference(model))
    result = b.op("Slice", value, b.const_i64([-1]), b.const_i64([_END]), b.const_i64([1]))
    for node in reversed(chain):
        inputs = [result if each is _operand(node) else each for each in node.inputs]
        result = b.like(node, *inputs)
    graph.outputs[graph.outputs.index(output)] = result
    output.name, result.name = None, logits


def _operand(node: ir.Node) -> ir.Value:
    """Return the operand of ``node`` that is not constant; there is one."""
    (operand,) = (value for value in node.inputs if value is not None and not _is_constant(value))
    return operand


def _is_constant(value: ir.Value) -> bool:
    """True if ``value`` is known before a run: a constant, or computed of constants, as quantized
    weights are."""
    if value.is_graph_input():
        return False
    node = value.producer()
    if value.const_value is not None or node is None:
        return value.const_value is not None
    return bool(node.inputs) and all(each is None or _is_constant(each) for each in node.inputs)


def _row_by_row(value: ir.Value) -> ir.Node | None:
    """Return the node of ``value`` if it computes the rows of float[B,S,N] one by one.

    Its other operands are constants: of rank 2 for the table of a MatMul, else of rank 1 at most.
    """
    node = value.producer()
    if node is None or node.op_type not in _ROWWISE or len(node.outputs) > 1:
        return None
    if node.domain != (MICROSOFT if node.op_type == "MatMulNBits" else ""):
        return None
    operands = [each for each in node.inputs if each is not None]
    moving = [each for each in operands if not _is_constant(each)]
    if len(moving) != 1 or moving[0].shape is None or len(moving[0].shape) != 3:
        return None
    if node.op_type == "MatMul":
        fits = moving[0] is operands[0] and len(operands[1].shape or ()) == 2
    elif node.op_type == "MatMulNBits":
        fits = moving[0] is operands[0]
    else:
        fits = all(len(each.shape or ()) < 2 for each in operands if each is not moving[0])
    return node if fits else None
