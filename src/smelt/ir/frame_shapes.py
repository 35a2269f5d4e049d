"""How many frames STFT cuts from a signal whose length is a symbol; the library counts numbers."""

from __future__ import annotations

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.shape_registry import ShapeRule


def counted_frames(theirs: ShapeRule) -> ShapeRule:
    """A rule for STFT: ``(size - length) // step + 1`` frames of ``length``."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        theirs(context, node)
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
    value = node.inputs[index] if index < len(node.inputs) else None
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    return None if tensor is None or tensor.size != 1 else int(tensor.numpy().item())


def _length(node: ir.Node) -> int | None:
    given = len(node.inputs) > 3 and node.inputs[3] is not None
    window = node.inputs[2] if len(node.inputs) > 2 else None
    if given or window is None:
        return _number(node, 3)
    size = window.shape[0] if window.shape is not None and len(window.shape) == 1 else None
    return size if isinstance(size, int) else None
