"""CenterCropPad: crops or pads each axis to a size, evenly at both ends."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.movement_at_run_time import is_told_by_data, size_to_find
from smelt.program.lower.registry import lowers


@lowers("CenterCropPad")
def center_crop_pad(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Pad by widths that may be negative; an odd difference puts one more at the end."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    rank = len(x.shape)
    given = cx.ints(node, "axes")
    axes = cx.axes(range(rank) if given is None else given, rank)
    if is_told_by_data(cx, node, [1]):
        _at_run_time(m, node, x, axes)
        return
    wanted = cx.ints(node, "shape", 1) or ()
    if len(wanted) != len(axes):
        raise cx.refuse(f"{len(wanted)} sizes for {len(axes)} axes")
    pads, sizes = [0] * (2 * rank), m.sizes(x)
    for axis, size in zip(axes, wanted, strict=True):
        more = size - sizes[axis]
        pads[axis] = more // 2 if more > 0 else -(-more // 2)
        pads[rank + axis] = more - pads[axis]
    output = cx.define(node.outputs[0])
    cx.emit("Pad", (x.slot,), (output,), pads=tuple(pads), mode="constant", value=0)


def _at_run_time(m: Steps, node: ir.Node, x: Array, axes: tuple[int, ...]) -> None:
    """Emit one Gather per axis, and zeros outside of the operand."""
    wanted = m.array(node.inputs[1])
    if wanted.shape != (len(axes),) or 0 in x.shape:
        raise m.cx.refuse("the sizes do not fit the axes, or there is no element")
    for place, axis in enumerate(axes):
        after = wanted.rows(place, place + 1, 0).reshape().cast(ir.DataType.INT64)
        places = m.numbers_below(after, size_to_find(m.cx, node.outputs[0], axis), node.outputs[0])
        size = m.emit("Shape", (x,), (1,), ir.DataType.INT64, start=axis, end=axis + 1).reshape()
        off = m.op("Where", size >= after, (size - after) / 2, -((after - size) / 2))
        at = places + off
        rows = m.op("Min", m.op("Max", at, 0), size - 1)
        inside = ((at >= 0) & (at < size)).reshape(at.shape[0], *[1] * (len(x.shape) - 1 - axis))
        x = m.op("Where", inside, x.gather(rows, axis), 0)
    m.give(node.outputs[0], x)
