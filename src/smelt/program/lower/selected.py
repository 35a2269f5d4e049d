"""Lowers operators with results of data-dependent size, and bit casts.

If the model declares the size of such a result, a run with another number of elements fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.scope import is_dead
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.program.instruction import Dim
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ABSENT, ProgramBuilder
from smelt.program.lower.registry import lowers

INT64 = ir.DataType.INT64


def _data_dependent_dim(value: ir.Value, axis: int) -> Dim:
    """Return the dim that shape inference gave a data-dependent size of ``value``."""
    shape = value.shape
    return shape[axis] if shape is not None and axis < len(shape) else ir.SymbolicDim(None)


def _set_type(value: ir.Value, dtype: ir.DataType, shape: Sequence[Dim]) -> None:
    """Set the element type and the shape of ``value``."""
    value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)


@lowers("NonZero")
def non_zero(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the coordinates [rank, count] of nonzero elements, in order."""
    cx.keep(node)


@lowers("Compress")
def compress(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the slices along ``axis`` that the condition selects; without an axis, of the flattened
    input."""
    m = Steps(cx)
    x, condition = m.array(node.inputs[0]), m.array(node.inputs[1])
    axis = 0
    if "axis" in node.attributes:
        axis = cx.axis(node.attributes.get_int("axis", 0), len(x.shape))
    elif len(x.shape) != 1:
        x = x.reshape(dim_product(x.shape))
    output = cx.define(node.outputs[0])
    cx.emit("Compress", (x.slot, condition.slot), (output,), axis=axis)


@lowers("Unique")
def unique(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the distinct slices along an axis, which is moved to the front.

    Further results: the first index of each distinct slice, for each slice the number of its
    distinct slice, and how often each distinct slice occurs.
    """
    m = Steps(cx)
    x, output = m.array(node.inputs[0]), node.outputs[0]
    by_axis = "axis" in node.attributes
    axis = cx.axis(node.attributes.get_int("axis", 0), len(x.shape)) if by_axis else 0
    perm = (axis, *(i for i in range(len(x.shape)) if i != axis))
    rows = x.transpose(*perm) if by_axis else x.reshape(dim_product(x.shape))
    count = _data_dependent_dim(output, axis)
    distinct = cx.new(rows.dtype, (count, *rows.shape[1:]), output.name or "unique")
    lists = [(count, 1), (rows.shape[0], 2), (count, 3)]
    outputs = [distinct]
    for size, position in lists:
        value = node.outputs[position] if position < len(node.outputs) else None
        if value is not None and not is_dead(value):
            _set_type(value, INT64, (size,))
            outputs.append(cx.define(value))
        else:
            outputs.append(cx.new(INT64, (size,), "places"))  # nothing reads this result
    cx.emit("Unique", (rows.slot,), outputs, sorted=node.attributes.get_int("sorted", 1))
    back = [perm.index(i) for i in range(len(perm))] if by_axis else [0]
    m.set_output(output, Array(m, distinct).transpose(*back))


@lowers("NonMaxSuppression")
def non_max_suppression(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a selection from boxes [B, N, 4] by scores [B, C, N], best first, without overlaps.

    Inputs: boxes, scores, the maximum number per class, the greatest overlap, the least score.
    """
    inputs = [cx.slot(cx.input(node, i)) for i in range(5)]
    most_per_class = inputs[2]
    if most_per_class == ABSENT:
        raise cx.refuse("max_output_boxes_per_class is missing, so that no box is selected")
    output = (cx.define(node.outputs[0]),)
    cx.emit(
        node.op_type,
        inputs,
        output,
        center_point_box=node.attributes.get_int("center_point_box", 0),
    )


@lowers("BitCast", "smelt::Bitcast")
def bit_cast(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a reinterpretation of the same bytes as elements of another type of equal width."""
    source, output = cx.slot(node.inputs[0]), node.outputs[0]
    to = ir.DataType(node.attributes.get_int("to", 0))
    if to.bitwidth != cx.dtype(source).bitwidth:
        raise cx.refuse("its element types have different widths")
    _set_type(output, to, cx.shape(source))
    cx.emit("BitCast", (source,), (cx.define(output),))
