"""Result sizes of Resize: ONNX rounds in float32, and to nearest if the aspect ratio is kept.

The library, onnx-shape-inference, multiplies in float64, where ``10 * 0.7`` is less than 7, and
rounds down also if the aspect ratio is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext


def infer_resize(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer a Resize by constant scales, or by sizes that keep the aspect ratio; False for
    others."""
    source = node.inputs[0] if node.inputs else None
    if source is None or source.shape is None:
        return False
    rank = len(source.shape)
    axes_attribute = node.attributes.get("axes")
    axes = (
        [axis_ % rank for axis_ in axes_attribute.as_ints()]
        if axes_attribute is not None
        else list(range(rank))
    )
    scales_input = 2 if context.opset >= 11 and node.op_type == "Resize" else 1
    scales, sizes = _numbers(node, scales_input), _numbers(node, 3)
    policy = node.attributes.get("keep_aspect_ratio_policy")
    policy_name = policy.as_string() if policy is not None else "stretch"
    dims = list(source.shape.dims)
    if scales is not None and len(scales) == len(axes):
        for axis, scale in zip(axes, scales, strict=True):
            size = dims[axis]
            if isinstance(size, int):
                dims[axis] = int(np.floor(np.float32(size) * np.float32(scale)))
            elif scale != 1:
                return False
    elif sizes is not None and policy_name != "stretch" and len(sizes) == len(axes):
        old_sizes = [dims[axis] for axis in axes]
        ratio = _common_ratio(old_sizes, sizes, policy_name)
        for axis, size in zip(axes, old_sizes, strict=True):
            if ratio is None or not isinstance(size, int):
                dims[axis] = context.new_symbolic_dim()
            else:
                dims[axis] = int(np.floor(ratio * np.float32(size) + 0.5))
    else:
        return False
    context.set_shape_and_dtype(node.outputs[0], ir.Shape(dims), source.dtype)
    return True


def _common_ratio(
    old_sizes: Sequence[int | ir.SymbolicDim], sizes: Sequence[float], policy: str
) -> np.float32 | None:
    """Return the ratio by which all sizes grow if the aspect ratio is kept.

    It is the least ratio of a new to an old size for the policy ``not_larger``, else the greatest.
    None if an old size is unknown or 0.
    """
    ratios: list[np.float32] = [
        np.float32(new) / np.float32(old)
        for new, old in zip(sizes, old_sizes, strict=True)
        if isinstance(old, int) and old > 0
    ]
    if len(ratios) < len(old_sizes):
        return None
    return min(ratios) if policy == "not_larger" else max(ratios)


def _numbers(node: ir.Node, index: int) -> list[float] | None:
    """Return the elements of a constant input; None for other inputs and for an empty constant."""
    value = node.inputs[index] if index < len(node.inputs) else None
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    if tensor is None:
        return None
    return [float(number) for number in tensor.numpy().reshape(-1)] or None
