"""Lowers operators that move elements: Transpose, Reshape, Concat, Slice, Pad..."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir.bounds import never_one
from smelt.ir.opset import RESHAPES
from smelt.ir.same_shape import same_shape
from smelt.ir.shapes.sizes_from_sizes import UNEVEN, longest_part
from smelt.ir.shapes.slice_operands import is_computed_input
from smelt.ir.shapes.slice_windows import window_sizes
from smelt.ir.symbolic_dims.invented_dims import is_invented
from smelt.operators.inputs import first
from smelt.program.instruction import DYNAMIC_EXPAND, REST, Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import (
    emit_dynamic_pad,
    emit_dynamic_reshape,
    emit_dynamic_slice,
    emit_dynamic_split,
    emit_dynamic_tile,
    is_data_dependent,
)
from smelt.program.lower.registry import lowers


@lowers("Transpose")
def transpose(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Transpose with ``perm`` filled in: output dim i is input dim ``perm[i]``."""
    rank = cx.rank(node.inputs[0])
    perm = cx.axes(cx.ints(node, "perm") or range(rank - 1, -1, -1), rank)
    cx.keep(node, perm=perm)


@lowers(*RESHAPES)
def reshape(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Reshape to the shape of its output slot, which needs no operand for the shape."""
    data, output = first(node.inputs), node.outputs[0]
    if same_shape(data.shape, output.shape):
        cx.alias(output, cx.slot(data))
        return
    if node.op_type == "Reshape" and emit_dynamic_reshape(cx, node):
        return
    if node.op_type == "Squeeze" and _has_unknown_rank(cx, node):
        raise cx.refuse(
            "it removes each dim that is 1 in a run, so the rank is not known",
            "give it axes, or bound its symbolic dims from 2 on: --dim NAME=2..16",
        )
    cx.emit("Reshape", (cx.slot(data),), (cx.define(output),))


def _has_unknown_rank(cx: ProgramBuilder, node: ir.Node) -> bool:
    """True for a Squeeze without axes whose symbolic dims may be 1."""
    has_axes = "axes" in node.attributes or cx.input(node, 1) is not None
    return not has_axes and not never_one(node.graph, cx.shape(cx.slot(node.inputs[0])))


@lowers("Expand")
def expand(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a broadcast to the shape of the output slot."""
    _expand(cx, node, cx.slot(node.inputs[0]), node.inputs[1])


def _expand(cx: ProgramBuilder, node: ir.Node, source: int, sizes: ir.Value | None) -> None:
    """Emit an Expand of ``source`` to the shape of the node's result.

    ``sizes`` is the operand that gives the shape. If its elements depend on data, the run reads
    them. If the result has dims without a name of the model, the attribute ``against`` has the
    requested sizes, so that the run can compute those dims.
    """
    output = cx.define(node.outputs[0])
    if cx.by_data(sizes):
        cx.emit(DYNAMIC_EXPAND, (source, cx.slot(sizes)), (output,))
        return
    shape, target = cx.shape(output), None
    if sizes is not None and any(is_invented(str(dim)) for dim in shape):
        target = cx.elements(sizes)
    if target is None or len(target) > len(shape):
        cx.emit("Expand", (source,), (output,))
        return
    against = (*(1,) * (len(shape) - len(target)), *target)
    cx.emit("Expand", (source,), (output,), against=against)


@lowers("Tile")
def tile(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Tile with attribute ``repeats``, one number per dim."""
    if is_data_dependent(cx, node, [1]):
        emit_dynamic_tile(cx, node)
        return
    source, repeats = cx.slot(node.inputs[0]), cx.symbolic_ints(node, "repeats", 1)
    if repeats is None or len(repeats) != len(cx.shape(source)):
        raise cx.refuse(f"it has {len(repeats or ())} repeats for {len(cx.shape(source))} dims")
    cx.emit("Tile", (source,), (cx.define(node.outputs[0]),), repeats=repeats)


@lowers("Concat")
def concat(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Concat with ``axis`` >= 0."""
    cx.keep(node, axis=cx.axis(node.attributes.get_int("axis", 1), cx.rank(node.inputs[0])))


@lowers("Slice")
def slice_(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Slice with ``starts``, ``ends``, ``axes`` and ``steps`` as in ONNX, with axes >= 0.

    ``program/indexing.slices`` clamps them once the shape is static. A window of known size whose
    start is computed at run time becomes a Gather along each of its axes.
    """
    sizes = window_sizes(node) if is_computed_input(node, 1) else None
    if sizes is not None:
        _window(cx, node, sizes)
        return
    if is_data_dependent(cx, node, range(1, 5)):
        emit_dynamic_slice(cx, node)
        return
    starts, ends = cx.symbolic_ints(node, "starts", 1), cx.symbolic_ints(node, "ends", 2)
    if starts is None or ends is None:
        raise cx.refuse("starts or ends are missing")
    axes_given, steps = cx.ints(node, "axes", 3), cx.ints(node, "steps", 4)
    axes = cx.axes(
        range(len(starts)) if axes_given is None else axes_given, cx.rank(node.inputs[0])
    )
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise cx.refuse("starts, ends, axes and steps do not fit each other")
    inputs, outputs = (cx.slot(node.inputs[0]),), (cx.define(node.outputs[0]),)
    cx.emit("Slice", inputs, outputs, starts=starts, ends=ends, axes=axes, steps=steps)


def _window(cx: ProgramBuilder, node: ir.Node, sizes: Mapping[int, int]) -> None:
    """Emit one Gather per axis of a Slice with run-time starts; ``sizes`` maps axis to rows."""
    data, starts = cx.slot(node.inputs[0]), cx.slot(node.inputs[1])
    dtype, shape = cx.dtype(starts), list(cx.shape(data))
    for i, (axis, size) in enumerate(sizes.items()):
        first = cx.emit_new(
            "Slice", (starts,), (1,), starts=(i,), ends=(i + 1,), axes=(0,), steps=(1,)
        )
        steps = cx.constant(np.arange(size, dtype=dtype.numpy()), "steps")
        rows = cx.emit_new("Add", (first, steps), (size,))
        shape[axis] = size
        if i + 1 == len(sizes):
            cx.emit("Gather", (data, rows), (cx.define(node.outputs[0]),), axis=axis)
        else:
            data = cx.emit_new("Gather", (data, rows), shape, axis=axis)


@lowers("Split")
def split(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one Slice per output."""
    data = node.inputs[0]
    source = cx.slot(data)
    axis = cx.axis(node.attributes.get_int("axis", 0), cx.rank(data))
    if is_data_dependent(cx, node, [1]):
        emit_dynamic_split(cx, node, axis)
        return
    sizes = cx.ints(node, "split", 1) or _equal_parts(cx, node, cx.shape(source)[axis])
    if len(sizes) != len(node.outputs):
        raise cx.refuse(f"it has {len(sizes)} sizes for {len(node.outputs)} outputs")
    start: Dim = 0
    for value, size in zip(node.outputs, sizes, strict=True):
        end = start + size if value is not node.outputs[-1] else REST
        bounds = {"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (1,)}
        cx.emit("Slice", (source,), (cx.define(value),), **bounds)
        start = end


def _equal_parts(cx: ProgramBuilder, node: ir.Node, size: Dim) -> tuple[Dim, ...]:
    """Return the sizes of the parts of an axis of ``size`` that a Split without sizes makes.

    They are equal. From opset 18 on, the last ones may be smaller, or empty.
    """
    count = node.attributes.get_int("num_outputs", len(node.outputs))
    if isinstance(size, int):
        part = math.ceil(size / count)
        return tuple(max(0, min(part, size - part * i)) for i in range(count))
    if count != len(node.outputs):
        raise cx.refuse(f"it has {count} parts for {len(node.outputs)} outputs")
    # Ends beyond the axis are its end, so the last parts need no other size than the first.
    return (longest_part(size, count, uneven=cx.opset >= UNEVEN),) * count


@lowers("Pad")
def pad(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Pad: ``pads`` has two numbers per dim, all begins, then all ends; ``value`` fills."""
    if is_data_dependent(cx, node, range(1, 4)):
        emit_dynamic_pad(cx, node)
        return
    data = node.inputs[0]
    rank = cx.rank(data)
    pad_widths = cx.symbolic_ints(node, "pads", 1)
    if pad_widths is None:
        raise cx.refuse("pads are missing")
    axes_given = cx.ints(node, "axes", 3)
    axes = cx.axes(range(rank) if axes_given is None else axes_given, rank)
    if len(pad_widths) != 2 * len(axes):
        raise cx.refuse(f"it has {len(pad_widths)} pads for {len(axes)} axes")
    pads: list[Dim] = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        pads[axis], pads[rank + axis] = pad_widths[i], pad_widths[len(axes) + i]
    # The attribute of opsets before 11 was called "value", the input "constant_value".
    value = cx.scalar(node, "value", 2)
    source, mode = cx.slot(data), node.attributes.get_string("mode", "constant")
    if mode != "constant":
        source, pads = _crop(cx, source, pads)
    outputs = (cx.define(node.outputs[0]),)
    cx.emit("Pad", (source,), outputs, pads=tuple(pads), mode=mode, value=value or 0)


def _crop(cx: ProgramBuilder, source: int, pads: list[Dim]) -> tuple[int, list[Dim]]:
    """Emit a Slice that crops ``source`` by its negative pads; return its slot and the other pads.

    It is needed for modes that repeat elements, such as ``reflect``: they must not repeat cropped
    ones.
    """
    crops = [-pad if isinstance(pad, int) and pad < 0 else 0 for pad in pads]
    if not any(crops):
        return source, pads
    shape, rank = list(cx.shape(source)), len(pads) // 2
    axes = tuple(axis for axis in range(rank) if crops[axis] or crops[rank + axis])
    for axis in axes:
        remaining = shape[axis] - crops[axis] - crops[rank + axis]
        shape[axis] = max(0, remaining) if isinstance(remaining, int) else remaining
    source = cx.emit_new(
        "Slice",
        (source,),
        shape,
        starts=tuple(crops[axis] for axis in axes),
        ends=tuple(-crops[rank + axis] or REST for axis in axes),
        axes=axes,
        steps=(1,) * len(axes),
    )
    return source, [0 if crop else pad for pad, crop in zip(pads, crops, strict=True)]


@lowers("ConstantOfShape")
def constant_of_shape(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit an expansion of one number to the shape of the output slot."""
    attr = node.attributes.get("value")
    fill = np.zeros(1, np.float32) if attr is None else attr.as_tensor().numpy()
    number = cx.constant(np.asarray(fill).reshape(()), "fill")
    _expand(cx, node, number, node.inputs[0])


@lowers("Shape", "Size")
def shape(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit sizes as data: dims ``start`` to ``end`` for Shape, their product for Size."""
    rank = cx.rank(node.inputs[0])
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", rank)
    first, last, _ = slice(start, end).indices(rank)
    cx.keep(node, start=first, end=max(first, last))
