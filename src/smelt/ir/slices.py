"""Constant bounds of a Slice."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.ir.rows import UNBOUNDED, Cut


def cuts_of(node: ir.Node, constants: Constants) -> dict[int, Cut] | None:
    """Return start, end and step by axis >= 0 of a Slice; None unless all are constant.

    Needs the rank of the input. Also None for cases without a defined meaning: an axis named twice,
    and a backward Slice that ends at the largest number, which runtimes read in two ways.
    """
    source = node.inputs[0]
    if source is None or source.shape is None or len(node.inputs) < 3:
        return None
    rank = len(source.shape)
    starts, ends = constants.ints(node.inputs[1]), constants.ints(node.inputs[2])
    axes = opset.axes_of(node, constants, index=3)
    steps_input = optional_input(node, 4)
    steps = None if steps_input is None else constants.ints(steps_input)
    if starts is None or ends is None or axes is None:
        return None
    if steps is None:
        if steps_input is not None:
            return None
        steps = (1,) * len(starts)
    if not axes and optional_input(node, 3) is None:
        axes = tuple(range(len(starts)))
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1 or 0 in steps:
        return None
    if any(not -rank <= axis < rank for axis in axes):
        return None
    if any(step < 0 and end in UNBOUNDED for end, step in zip(ends, steps, strict=True)):
        return None
    cuts: dict[int, Cut] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        cuts[axis % rank] = Cut(start, end, step)
    return cuts if len(cuts) == len(axes) else None
