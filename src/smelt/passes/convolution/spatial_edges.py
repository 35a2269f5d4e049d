"""Read the spatial pads of a Pad and the crops of a Slice."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import first_inputs, optional_input


def padding_of(
    pad: ir.Node, order: Sequence[int], constants: Constants, version: int
) -> list[int] | None:
    """Return the spatial pads of ``pad``, begins before ends.

    ``order`` lists the axes of its input: the batch, the channels, the spatial ones. None if the
    Pad has another value than 0, crops, pads other axes, or is not constant.
    """
    _, pads_input, value, axes_input = first_inputs(pad, 4)
    if version < 11 or opset.attribute(pad, "mode", version) != "constant":
        return None
    if value is not None and not constants.is_number(value, 0):
        return None
    pads = constants.ints(pads_input)
    axes = tuple(range(len(order))) if axes_input is None else constants.ints(axes_input)
    if pads is None or axes is None or len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        return None
    begins, ends = [0] * len(order), [0] * len(order)
    for index, axis in enumerate(axes):
        position = order.index(axis % len(order))
        begins[position], ends[position] = pads[index], pads[index + len(axes)]
    return None if any((*begins[:2], *ends[:2])) else [*begins[2:], *ends[2:]]


def crops_of(
    cut: ir.Node, order: Sequence[int], sizes: Sequence[int | None], constants: Constants
) -> list[int] | None:
    """Return how much ``cut``, a Slice, removes at the begins, then the ends, of the spatial axes.

    ``order`` has for each axis of its input: 0 for the batch, 1 for the channels, 2 or more for a
    spatial axis. ``sizes`` are those of the spatial axes. None if the Slice takes steps, cuts other
    axes, leaves nothing, or is not constant.
    """
    if len(cut.inputs) < 3:
        return None
    starts, ends = constants.ints(cut.inputs[1]), constants.ints(cut.inputs[2])
    axes = opset.axes_of(cut, constants, index=3)
    steps_input = optional_input(cut, 4)
    steps = () if steps_input is None else constants.ints(steps_input)
    if starts is None or ends is None or axes is None or steps is None or set(steps) - {1}:
        return None
    crops = [0] * (2 * len(sizes))
    for axis, start, end in zip(axes or range(len(starts)), starts, ends, strict=True):
        spatial_axis = order[axis % len(order)] - 2
        size = sizes[spatial_axis] if spatial_axis >= 0 else None
        if size is None:
            return None
        first, stop, _ = slice(start, end).indices(size)
        if first >= stop:
            return None
        crops[spatial_axis], crops[spatial_axis + len(sizes)] = first, size - stop
    return crops
