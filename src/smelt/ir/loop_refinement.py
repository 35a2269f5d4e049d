"""What becomes known of an operand of a branch, a loop or a scan, carried into its body and out.

What a loop carries starts with one shape and may come back with another. Only where each round
provably returns the shape that it got, the start speaks for every round.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.shapes import ShapeInference, same_shape


def affected(node: ir.Node) -> list[ir.Value]:
    """The values that ``refine`` may come to know better."""
    values = list(node.outputs)
    if node.op_type in ("Loop", "Scan") and not node.domain:
        for body in scope.subgraphs(node):
            values += dict.fromkeys((*body.inputs, *body.outputs))
    return list(dict.fromkeys(values))


def refine(shapes: ShapeInference, node: ir.Node) -> None:
    """Infer what ``node`` returns again, and what its body is given; nothing is forgotten."""
    if node.domain or node.op_type not in ("Loop", "Scan"):
        shapes.infer_node(node)
        return
    for body in scope.subgraphs(node):
        if node.op_type == "Loop":
            _refine_loop(shapes, node, body)
        else:
            _refine_scan(shapes, node, body)


def _refine_loop(shapes: ShapeInference, node: ir.Node, body: ir.Graph) -> None:
    carried = len(node.inputs) - 2
    if len(body.inputs) != len(node.inputs) or len(body.outputs) != len(node.outputs) + 1:
        return
    states = list(
        zip(node.inputs[2:], body.inputs[2:], body.outputs[1:], node.outputs, strict=False)
    )
    for start, before, after, result in states:
        if start is None or not same_shape(before.shape, after.shape):
            continue
        shapes.learn(before, start.shape, start.dtype)
        if _is_made_in(body, after):
            shapes.learn(after, start.shape, start.dtype)
        shapes.learn(result, start.shape, start.dtype)
    for inner, result in zip(body.outputs[1 + carried :], node.outputs[carried:], strict=True):
        if inner.shape is not None and result.shape is not None:
            shapes.learn(result, ir.Shape([result.shape[0], *inner.shape.dims]), inner.dtype)


def _refine_scan(shapes: ShapeInference, node: ir.Node, body: ir.Graph) -> None:
    count = node.attributes.get("num_scan_inputs")
    if count is None or len(body.inputs) != len(node.inputs):
        return
    states = len(node.inputs) - count.as_int()
    given = node.attributes.get("scan_input_axes")
    axes = given.as_ints() if given is not None else [0] * count.as_int()
    for index, (outer, inner) in enumerate(zip(node.inputs, body.inputs, strict=True)):
        if outer is None or outer.shape is None:
            continue
        dims = list(outer.shape.dims)
        if index >= states and dims:
            del dims[axes[index - states]]
        shapes.learn(inner, ir.Shape(dims), outer.dtype)
    shapes.infer_node(node)


def _is_made_in(body: ir.Graph, value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is body
