"""The largest or smallest elements along an axis."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.instruction import DYNAMIC_TOP_K
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("TopK")
def top_k(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit TopK with attributes ``axis`` and ``largest``; the results have ``k`` elements there.

    The results are always sorted, equal elements by index. NaN counts as larger than any number.
    If ``k`` is data-dependent, emit the run-time sized form, which reads ``k`` as an input.
    """
    axis = cx.axis(node.attributes.get_int("axis", -1), cx.rank(node.inputs[0]))
    largest = node.attributes.get_int("largest", 1)
    if cx.by_data(cx.input(node, 1)):
        outputs = tuple(cx.define(value) for value in node.outputs)
        inputs = (cx.slot(node.inputs[0]), cx.slot(node.inputs[1]))
        cx.emit(DYNAMIC_TOP_K, inputs, outputs, axis=axis, largest=largest)
        return
    counts = cx.symbolic_ints(node, "k", 1)
    if not counts:
        raise cx.refuse("k is computed as the model runs", "fix k in the model")
    slot = cx.slot(node.inputs[0])
    shape = tuple(counts[0] if i == axis else dim for i, dim in enumerate(cx.shape(slot)))
    size = cx.shape(slot)[axis]
    if isinstance(counts[0], int) and (
        counts[0] < 0 or (isinstance(size, int) and counts[0] > size)
    ):
        raise cx.refuse(f"k is {counts[0]}, but the axis has {size} elements")
    for value, dtype in zip(node.outputs, (cx.dtype(slot), ir.DataType.INT64), strict=True):
        value.shape, value.type = ir.Shape(shape), ir.TensorType(dtype)
    outputs = tuple(cx.define(value) for value in node.outputs)
    cx.emit("TopK", (slot,), outputs, axis=axis, largest=largest)
