"""Infer If, Loop and Scan again after an edit, when more is known about their operands.

Shapes of operands become shapes of body inputs, and shapes of body outputs become shapes of
results. A loop state may come back from an iteration with another shape; its initial shape holds in
every iteration only if each iteration provably keeps it.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.loop_rounds import trip_count
from smelt.ir.same_shape import same_dim
from smelt.ir.shapes.control_flow_shapes import is_outer
from smelt.ir.shapes.inference import ShapeInference


def affected(node: ir.Node) -> list[ir.Value]:
    """Return the values whose shapes ``refine`` may improve."""
    values = list(node.outputs)
    if node.op_type in ("Loop", "Scan") and not node.domain:
        for body in scope.subgraphs(node):
            values += dict.fromkeys((*body.inputs, *body.outputs))
    return list(dict.fromkeys(values))


def refine(shapes: ShapeInference, node: ir.Node) -> None:
    """Infer the outputs of ``node`` and the inputs of its body again; known facts stay."""
    if node.domain or node.op_type not in ("Loop", "Scan"):
        shapes.infer_node(node)
        return
    for body in scope.subgraphs(node):
        if node.op_type == "Loop":
            _refine_loop(shapes, node, body)
        else:
            _refine_scan(shapes, node, body)


def _refine_loop(shapes: ShapeInference, node: ir.Node, body: ir.Graph) -> None:
    """Infer the shapes of the states and the stacked outputs of a Loop from its operands.

    A state is known only in the dims that an iteration keeps; see ``_kept_dims``.
    """
    state_count = len(node.inputs) - 2
    if len(body.inputs) != len(node.inputs) or len(body.outputs) != len(node.outputs) + 1:
        return
    states = zip(node.inputs[2:], body.inputs[2:], body.outputs[1:], node.outputs, strict=False)
    for start, before, after, result in states:
        if start is None:
            continue
        shape = _kept_dims(start.shape, before.shape, after.shape)
        shapes.learn(before, shape, start.dtype)
        if _is_made_in(body, after):
            shapes.learn(after, shape, start.dtype)
        shapes.learn(result, shape, start.dtype)
    for inner, result in zip(
        body.outputs[1 + state_count :], node.outputs[state_count:], strict=True
    ):
        if inner.shape is not None:
            dims = (dim if is_outer(dim) else ir.SymbolicDim(None) for dim in inner.shape)
            known_count = trip_count(node)
            count = ir.SymbolicDim(None) if known_count is None else known_count
            shapes.learn(result, ir.Shape([count, *dims]), inner.dtype)


def _kept_dims(
    start: ir.Shape | None, before: ir.Shape | None, after: ir.Shape | None
) -> ir.Shape | None:
    """Return ``start``, the initial shape of a state, with unknown dims where iterations change it.

    ``before`` and ``after`` are its shapes at begin and end of an iteration. None if a rank is
    unknown or changes.
    """
    if start is None or before is None or after is None:
        return None
    if not len(start) == len(before) == len(after):
        return None
    rows = zip(start.dims, before.dims, after.dims, strict=True)
    return ir.Shape(
        [
            start_dim if same_dim(dim_before, dim_after) else ir.SymbolicDim(None)
            for start_dim, dim_before, dim_after in rows
        ]
    )


def _refine_scan(shapes: ShapeInference, node: ir.Node, body: ir.Graph) -> None:
    """Infer the shapes of the inputs of a Scan's body from its operands, then those of its
    outputs."""
    count = node.attributes.get("num_scan_inputs")
    if count is None or len(body.inputs) != len(node.inputs):
        return
    states = len(node.inputs) - count.as_int()
    axes_attribute = node.attributes.get("scan_input_axes")
    axes = axes_attribute.as_ints() if axes_attribute is not None else [0] * count.as_int()
    for index, (outer, inner) in enumerate(zip(node.inputs, body.inputs, strict=True)):
        if outer is None or outer.shape is None:
            continue
        dims = list(outer.shape.dims)
        if index >= states and dims:
            del dims[axes[index - states]]
        shapes.learn(inner, ir.Shape(dims), outer.dtype)
    shapes.infer_node(node)


def _is_made_in(body: ir.Graph, value: ir.Value) -> bool:
    """True if a node of ``body`` computes ``value``, which is then no value of an outer graph."""
    producer = value.producer()
    return producer is not None and producer.graph is body
