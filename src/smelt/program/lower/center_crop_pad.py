"""CenterCropPad: crops or pads each axis to a size, evenly at both ends."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import data_dependent_size, is_data_dependent
from smelt.program.lower.registry import lowers


@lowers("CenterCropPad")
def center_crop_pad(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Pad whose widths are negative where it crops; half of a difference goes to each end.

    Of an odd difference, the end gets one more.
    """
    m = Steps(cx)
    x = m.array(node.inputs[0])
    rank = len(x.shape)
    axes_given = cx.ints(node, "axes")
    axes = cx.axes(range(rank) if axes_given is None else axes_given, rank)
    if is_data_dependent(cx, node, [1]):
        _emit_dynamic_crop_pad(m, node, x, axes)
        return
    target_sizes = cx.ints(node, "shape", 1) or ()
    if len(target_sizes) != len(axes):
        raise cx.refuse(f"it has {len(target_sizes)} sizes for {len(axes)} axes")
    pads, sizes = [0] * (2 * rank), m.sizes(x)
    for axis, size in zip(axes, target_sizes, strict=True):
        growth = size - sizes[axis]
        pads[axis] = growth // 2 if growth > 0 else -(-growth // 2)
        pads[rank + axis] = growth - pads[axis]
    output = cx.define(node.outputs[0])
    cx.emit("Pad", (x.slot,), (output,), pads=tuple(pads), mode="constant", value=0)


def _emit_dynamic_crop_pad(m: Steps, node: ir.Node, x: Array, axes: tuple[int, ...]) -> None:
    """Emit one Gather per axis for data-dependent sizes; rows outside of the operand are 0."""
    target_sizes = m.array(node.inputs[1])
    if target_sizes.shape != (len(axes),):
        raise m.cx.refuse(f"the sizes do not fit the axes: one number for each of {len(axes)}")
    if 0 in x.shape:
        raise m.cx.refuse("the tensor has no element")
    for position, axis in enumerate(axes):
        target = target_sizes.rows(position, position + 1, 0).reshape().cast(ir.DataType.INT64)
        numbers = m.numbers_below(
            target, data_dependent_size(m.cx, node.outputs[0], axis), node.outputs[0]
        )
        size = m.emit("Shape", (x,), (1,), ir.DataType.INT64, start=axis, end=axis + 1).reshape()
        offset = m.op("Where", size >= target, (size - target) / 2, -((target - size) / 2))
        positions = numbers + offset
        rows = m.op("Min", m.op("Max", positions, 0), size - 1)
        inside = ((positions >= 0) & (positions < size)).reshape(
            positions.shape[0], *[1] * (len(x.shape) - 1 - axis)
        )
        x = m.op("Where", inside, x.gather(rows, axis), 0)
    m.set_output(node.outputs[0], x)
