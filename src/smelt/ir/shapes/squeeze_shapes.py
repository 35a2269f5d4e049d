"""The shape of a Squeeze whose axes are computed in the run, absent, or listed twice.

The library, onnx-shape-inference 0.4, removes every 1 if the axes are computed in the run.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.bounds import never_one
from smelt.ir.listed_axes import listed_axes, without_repeats
from smelt.ir.node_inputs import optional_input
from smelt.ir.shapes.slice_operands import is_computed_input


def infer_squeeze(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a Squeeze with run-time, repeated or absent axes; False for others."""
    source = node.inputs[0]
    if source is None:
        return False
    if is_computed_input(node, 1):
        context.set_shape_and_dtype(node.outputs[0], _squeezed_rank(context, node), source.dtype)
        return True
    if source.shape is not None and (repeated := _axes_with_repeats(node, len(source.shape))):
        dims = [d for axis, d in enumerate(source.shape.dims) if axis not in repeated]
        context.set_shape_and_dtype(node.outputs[0], ir.Shape(dims), source.dtype)
        return True
    has_axes = "axes" in node.attributes or optional_input(node, 1) is not None
    if has_axes or source.shape is None or source.shape.is_static():
        return False
    # Without axes every 1 goes, and a symbolic dim may be one.
    known = never_one(node.graph, source.shape)
    shape = ir.Shape([dim for dim in source.shape if dim != 1]) if known else None
    context.set_shape_and_dtype(node.outputs[0], shape, source.dtype)
    return True


def _axes_with_repeats(node: ir.Node, rank: int) -> set[int]:
    """Return the axes of a Squeeze, >= 0, if one is listed twice, which ONNX Runtime allows.

    Empty for any other Squeeze, and if an axis is out of range.
    """
    listed = listed_axes(node)
    if len(without_repeats(listed, rank)) == len(listed):
        return set()
    axes = {axis + rank if axis < 0 else axis for axis in listed}
    return axes if axes <= set(range(rank)) else set()


def _squeezed_rank(context: ShapeInferenceContext, node: ir.Node) -> ir.Shape | None:
    """Return a shape of unknown dims if the number of axes is known, else None."""
    source, axes = node.inputs[0], node.inputs[1]
    if source is None or axes is None or source.shape is None or axes.shape is None:
        return None
    if len(axes.shape) != 1 or not isinstance(axes.shape[0], int):
        return None
    rank = len(source.shape) - axes.shape[0]
    return ir.Shape([context.new_symbolic_dim() for _ in range(rank)]) if rank >= 0 else None
