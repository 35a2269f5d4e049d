"""The number of frames of an STFT whose signal has a symbolic length.

The rule of the library, onnx-shape-inference, counts frames only of a length that is a number.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.node_inputs import optional_input
from smelt.ir.shapes.shape_registry import ShapeRule


def counted_frames(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of STFT: the result has ``(size - length) // step + 1`` frames of
    ``length``."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then set the number of frames if it is symbolic."""
        library_rule(context, node)
        signal, result = node.inputs[0], node.outputs[0].shape
        if signal is None or signal.shape is None or result is None:
            return
        size, step, length = signal.shape[1], _number(node, 1), _length(node)
        if isinstance(size, ir.SymbolicDim) and size.value is not None and step and length:
            dims = list(result.dims)
            dims[1] = (size - length) // step + 1
            node.outputs[0].shape = ir.Shape(dims)

    return infer


def _number(node: ir.Node, index: int) -> int | None:
    """Return input ``index`` of ``node`` if it is a constant of one element, else None."""
    value = node.inputs[index] if index < len(node.inputs) else None
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    return None if tensor is None or tensor.size != 1 else int(tensor.numpy().item())


def _length(node: ir.Node) -> int | None:
    """Return the frame length: input 3, else the static size of the window (input 2), else None."""
    window, length = optional_input(node, 2), optional_input(node, 3)
    if length is not None or window is None:
        return _number(node, 3)
    size = window.shape[0] if window.shape else None
    return size if isinstance(size, int) else None
