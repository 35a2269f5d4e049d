"""Shapes of what branches and loops return, without guessing which way they go.

The library takes the shape of one branch where the other's is unknown, and assumes that what a
loop carries keeps the shape that it starts with. Neither is so: a loop may append to a tensor.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir import scope


def merge(
    context: ShapeInferenceContext, a: ir.Shape | None, b: ir.Shape | None
) -> ir.Shape | None:
    """A shape that both have: equal dims stay, others become unknown; None if ranks differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    pairs = zip(a.dims, b.dims, strict=True)
    return ir.Shape([x if _same(x, y) else context.new_symbolic_dim() for x, y in pairs])


def infer_if(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Claims every If whose results are tensors."""
    branches = [node.attributes.get(name) for name in ("then_branch", "else_branch")]
    if any(branch is None or branch.is_ref() for branch in branches):
        return False
    first, second = (branch.as_graph().outputs for branch in branches if branch is not None)
    if len(first) != len(second) or len(first) != len(node.outputs):
        return False
    if not all(_is_tensor(value) for value in (*first, *second)):
        return False
    for output, x, y in zip(node.outputs, first, second, strict=True):
        dtype = x.dtype if x.dtype is not None else y.dtype
        _set(context, output, merge(context, x.shape, y.shape), dtype)
    return True


def infer_loop(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Claims every Loop whose results are tensors."""
    body = _body(node)
    if body is None or not all(_is_tensor(value) for value in body.outputs):
        return False
    carried = len(node.inputs) - 2
    steady = _is_steady(node, body)
    if not steady:
        _forget(body)
    for index, output in enumerate(node.outputs):
        inner = body.outputs[index + 1]
        if index < carried:
            start = node.inputs[index + 2]
            known = start.shape if start is not None and steady else None
            _set(context, output, merge(context, known, inner.shape), inner.dtype)
        else:
            shape = None
            if steady and inner.shape is not None:
                shape = ir.Shape([context.new_symbolic_dim(), *inner.shape.dims])
            _set(context, output, shape, inner.dtype)
    return True


def _body(node: ir.Node) -> ir.Graph | None:
    attr = node.attributes.get("body")
    if attr is None or attr.is_ref():
        return None
    body = attr.as_graph()
    fits = len(body.outputs) == len(node.outputs) + 1 and len(body.inputs) == len(node.inputs)
    return body if fits else None


def _is_steady(node: ir.Node, body: ir.Graph) -> bool:
    """True if every round returns the shapes that it got, so the first round speaks for all."""
    for index in range(len(node.inputs) - 2):
        start, before = node.inputs[index + 2], body.inputs[index + 2]
        after = body.outputs[index + 1]
        shapes = [value.shape for value in (start, before, after) if value is not None]
        if len(shapes) < 3 or any(shape is None for shape in shapes):
            return False
        first, *others = (shape.dims for shape in shapes if shape is not None)
        for dims in others:
            if len(dims) != len(first) or not all(map(_same, first, dims)):
                return False
    return True


def _forget(body: ir.Graph) -> None:
    """Drop the shapes inside a body that may meet other shapes in later rounds."""
    for graph in scope.graphs_below(body):
        for node in graph:
            for value in node.outputs:
                value.shape = None
    for value in body.inputs[2:]:
        value.shape = None


def _same(x: int | ir.SymbolicDim, y: int | ir.SymbolicDim) -> bool:
    if isinstance(x, int) or isinstance(y, int):
        return isinstance(x, int) and isinstance(y, int) and x == y
    return x.value is not None and x.value == y.value


def _is_tensor(value: ir.Value) -> bool:
    return value.type is None or isinstance(value.type, ir.TensorType)


def _set(
    context: ShapeInferenceContext,
    value: ir.Value,
    shape: ir.Shape | None,
    dtype: ir.DataType | None,
) -> None:
    if shape is None and context.policy == "override":
        value.shape = None
    if dtype is not None or shape is not None:
        context.set_shape_and_dtype(value, shape, dtype)
