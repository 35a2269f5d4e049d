"""Result sizes of pools in ceil mode and under ``auto_pad`` for images of symbolic size.

A window that would start in the padding at the end is not counted. The library,
onnx-shape-inference, leaves it out only where the size is a number.
"""

from __future__ import annotations

import math

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.shapes.shape_registry import ShapeRule


def counted_windows(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of pools so that windows that start in the padding at the end are not counted.

    ``ceil((size + begin) / stride)`` windows start before that padding. In ceil mode, all of them
    count if ``end + stride`` exceeds the window. ``auto_pad="VALID"`` means no padding here, as in
    ONNX Runtime.
    """

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then count the windows along each symbolic axis."""
        library_rule(context, node)
        image = node.inputs[0] if node.inputs else None
        result = node.outputs[0]
        if image is None or image.shape is None or result.shape is None:
            return
        padding = node.attributes.get_string("auto_pad", "NOTSET") or "NOTSET"
        if padding.startswith("SAME"):
            _keep_size(node, image.shape, result.shape)
            return
        if not _is_ceiled(node):
            return
        kernel = list(node.attributes["kernel_shape"].as_ints())
        count = len(kernel)
        strides = _ints(node, "strides", [1] * count)
        pads = [0] * 2 * count if padding == "VALID" else _ints(node, "pads", [0] * 2 * count)
        dilations = _ints(node, "dilations", [1] * count)
        rank = count + 2
        if len(image.shape) != rank or len(result.shape) != rank or len(strides) != count:
            return
        dims = list(result.shape.dims)
        for axis in range(count):
            size, begin, end = image.shape[axis + 2], pads[axis], pads[axis + count]
            window = dilations[axis] * (kernel[axis] - 1) + 1
            if isinstance(size, ir.SymbolicDim) and end + strides[axis] > window:
                dims[axis + 2] = math.ceil((size + begin) / strides[axis])
        _set_results(node, dims)

    return infer


def _keep_size(node: ir.Node, image: ir.Shape, result: ir.Shape) -> None:
    """Set the result sizes under ``auto_pad``: one window per stride, whatever the kernel."""
    strides = _ints(node, "strides", [1] * (len(image) - 2))
    if len(strides) != len(image) - 2 or len(image) != len(result) or min(strides, default=0) < 1:
        return
    dims = list(result.dims)
    for axis, stride in enumerate(strides, start=2):
        size = image[axis]
        if isinstance(size, ir.SymbolicDim):
            dims[axis] = size if stride == 1 else math.ceil(size / stride)
    _set_results(node, dims)


def _set_results(node: ir.Node, dims: list[int | ir.SymbolicDim]) -> None:
    """Set the shape of all results: values and indices."""
    for output in node.outputs:
        output.shape = ir.Shape(dims)


def _is_ceiled(node: ir.Node) -> bool:
    """True for a pool in ceil mode."""
    return "kernel_shape" in node.attributes and bool(node.attributes.get_int("ceil_mode", 0))


def _ints(node: ir.Node, name: str, default: list[int]) -> list[int]:
    """Return the list attribute ``name``, or ``default``."""
    return list(node.attributes[name].as_ints()) if name in node.attributes else default
