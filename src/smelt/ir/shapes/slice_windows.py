"""Slices whose number of rows is known although their starts are not: each end is its start plus a
constant.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.node_inputs import optional_input
from smelt.ir.shapes.slice_operands import sliced_axes
from smelt.ir.value_facts.element_ranges import ranges_of


def window_sizes(node: ir.Node) -> dict[int, int] | None:
    """Return the size per axis of a Slice with run-time starts that provably lies inside its
    operand.

    None unless all sizes are proved: the ends are the starts plus a constant, no start is negative,
    and no end lies beyond the operand.
    """
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    axes = sliced_axes(node, len(source.shape))
    stepped = optional_input(node, 4) is not None
    rows = _window(node) if axes is not None and not stepped else None
    if axes is None or rows is None or len(rows) != len(axes):
        return None
    sizes = {}
    for axis, (size, last) in zip(axes, rows, strict=True):
        dim = source.shape[axis]
        if last is None or not isinstance(dim, int) or last > dim:
            return None
        sizes[axis] = size
    return sizes


def _window(node: ir.Node) -> list[tuple[int, int | None]] | None:
    """Return, for each sliced axis, the size of ``[start : start + size]`` and its largest end.

    The largest end is None if unknown. Returns None unless the ends are computed as the starts plus
    a constant, and no start is negative.
    """
    starts, ends = node.inputs[1], node.inputs[2]
    if starts is None or ends is None:
        return None
    producer = ends.producer()
    if producer is None or producer.op_type != "Add" or producer.domain:
        return None
    addends = [value for value in producer.inputs if value is not starts]
    start_ranges = ranges_of(starts)
    sizes = ranges_of(addends[0]) if len(addends) == 1 and addends[0] is not None else None
    if start_ranges is None or sizes is None or len(start_ranges) != len(sizes):
        return None
    window: list[tuple[int, int | None]] = []
    for (low, high), (size, size_again) in zip(start_ranges, sizes, strict=True):
        if low is None or low < 0 or size is None or size != size_again or size < 0:
            return None
        window.append((size, None if high is None else high + size))
    return window
