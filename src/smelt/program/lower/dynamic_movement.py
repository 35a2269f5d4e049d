"""Lowers Slice, Split, Pad, Tile and Reshape with data-dependent bounds, sizes, pads or repeats."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir.shapes.declared import declared
from smelt.ir.symbolic_dims.invented_dims import is_invented
from smelt.program.instruction import (
    DYNAMIC_PAD,
    DYNAMIC_RESHAPE,
    DYNAMIC_SLICE,
    DYNAMIC_TILE,
    AttributeValue,
    Dim,
)
from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ABSENT, ProgramBuilder


def is_data_dependent(cx: ProgramBuilder, node: ir.Node, positions: Iterable[int]) -> bool:
    """True if an input of ``node`` at one of ``positions`` is data-dependent."""
    return any(cx.by_data(cx.input(node, position)) for position in positions)


def emit_dynamic_slice(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Slice with inputs data, starts, ends, axes and steps; the last two may be absent."""
    _emit(cx, node, DYNAMIC_SLICE, [cx.input(node, i) for i in range(5)])


def emit_dynamic_pad(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Pad with inputs data, pads, value and axes; the last two may be absent."""
    mode = node.attributes.get_string("mode", "constant")
    _emit(cx, node, DYNAMIC_PAD, [cx.input(node, i) for i in range(4)], mode=mode)


def emit_dynamic_tile(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Tile with inputs data and repeats, one number per dim."""
    _emit(cx, node, DYNAMIC_TILE, [cx.input(node, i) for i in range(2)])


def emit_dynamic_reshape(cx: ProgramBuilder, node: ir.Node) -> bool:
    """Emit a Reshape with inputs data and sizes, and return True; False if a Reshape to the sizes
    of the output suffices.

    It suffices if the sizes do not depend on data, or if only one is unknown, which then follows
    from the number of elements.
    """
    output = node.outputs[0]
    dims = output.shape.dims if output.shape is not None else ()
    unknown_dims = [dim for dim in dims if _is_unknown(dim) or is_invented(str(dim))]
    if len(unknown_dims) == 1 or not is_data_dependent(cx, node, [1]):
        return False
    name_sizes(cx, output)
    slots = [cx.slot(node.inputs[0]), cx.slot(node.inputs[1])]
    allowzero = node.attributes.get_int("allowzero", 0)
    cx.emit(DYNAMIC_RESHAPE, slots, (cx.define(output),), allowzero=allowzero)
    return True


def emit_dynamic_split(cx: ProgramBuilder, node: ir.Node, axis: int) -> None:
    """Emit a Split with run-time sizes: Slices between the cumulative sums of the sizes.

    Sizes [2, 3] give rows 0 to 2 and 2 to 5. If a size is negative, or their sum is not the size of
    the axis, the steps of the Slices become 0, at which the run aborts.
    """
    m = Steps(cx)
    x, sizes = m.array(node.inputs[0]), m.array(node.inputs[1])
    if sizes.shape != (len(node.outputs),):
        raise cx.refuse(f"its sizes have the shape {sizes.shape} for {len(node.outputs)} outputs")
    ends = m.emit("CumSum", (sizes,), sizes.shape, axis=0, exclusive=0, reverse=0)
    axis_size = m.emit("Shape", (x,), (1,), ir.DataType.INT64, start=axis, end=axis + 1)
    fits = (sizes.reduce("ReduceMin", 0, keep=True) >= 0) & (
        m.op("Equal", sizes.reduce("ReduceSum", 0, keep=True), axis_size)
    )
    steps, axes = fits.cast(ir.DataType.INT64), m.constant([axis])
    starts = ends - sizes
    for i, value in enumerate(node.outputs):
        data_dependent_size(cx, value, axis)
        bounds = (array.rows(i, i + 1, 0) for array in (starts, ends))
        inputs = [array.slot for array in (x, *bounds, axes, steps)]
        cx.emit(DYNAMIC_SLICE, inputs, (cx.define(value),))


def name_sizes(cx: ProgramBuilder, value: ir.Value) -> None:
    """Give symbols to the unnamed dims of ``value``; the run computes a number for each symbol."""
    if value.shape is not None:
        value.shape = ir.Shape(
            [
                ir.SymbolicDim(f"_run{len(cx.program.slots)}_{axis}") if _is_unknown(dim) else dim
                for axis, dim in enumerate(value.shape.dims)
            ]
        )


def data_dependent_size(cx: ProgramBuilder, value: ir.Value, axis: int) -> Dim:
    """Return the size of ``value`` along ``axis``: a number, or a symbol if it is
    data-dependent."""
    if value.shape is None:
        raise cx.refuse(f"the rank of {value.name!r} is not known")
    if axis >= len(value.shape):
        raise cx.refuse(f"{value.name!r} is declared with {len(value.shape)} dims, and has more")
    name_sizes(cx, value)
    return value.shape.dims[axis]


def declared_size(cx: ProgramBuilder, value: ir.Value, axis: int) -> Dim:
    """Return the size of ``value`` along ``axis`` that the model declares, else the inferred size.

    Only outputs of the graph have a declared size, which the run checks.
    """
    dims = (value.shape or ir.Shape([])).dims
    for output, declared_dims in zip(cx.model.graph.outputs, declared(cx.model.graph), strict=True):
        if output is value and declared_dims is not None and len(declared_dims) == len(dims):
            return declared_dims[axis]
    return dims[axis]


def _emit(
    cx: ProgramBuilder,
    node: ir.Node,
    op: str,
    inputs: Iterable[ir.Value | None],
    **attributes: AttributeValue,
) -> None:
    """Emit a data-dependent movement ``op`` whose result has the rank of the data."""
    slots = [cx.slot(value) if value is not None and value.name else ABSENT for value in inputs]
    for slot in slots[1:]:
        if slot != ABSENT and not all(isinstance(size, int) for size in cx.shape(slot)):
            raise cx.refuse_size("the number of axes is computed while the model runs")
    output = node.outputs[0]
    name_sizes(cx, output)
    if output.shape is None or len(output.shape) != len(cx.shape(slots[0])):
        raise cx.refuse("the result is not declared with the rank of the data")
    cx.emit(op, slots, (cx.define(output),), **attributes)


def _is_unknown(dim: int | ir.SymbolicDim) -> bool:
    """True if ``dim`` is neither a number nor named."""
    return isinstance(dim, ir.SymbolicDim) and dim.value is None
