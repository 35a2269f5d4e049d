"""The dim that a one-element value holds, if it comes from a Shape."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.same_shape import Dim
from smelt.ir.walk import producer_of

_SAME = ("Identity", "Unsqueeze", "Squeeze", "Reshape")


def dim_from_shape(value: ir.Value | None) -> Dim | None:
    """Return the dim that ``value`` holds if it is a Shape of one dim or one Gather from a Shape.

    Reshapes and similar around the Gather are skipped. None if ``value`` is computed otherwise.
    """
    while (reshaping := producer_of(value, *_SAME)) is not None:
        value = reshaping.inputs[0]
    node = producer_of(value, "Shape", "Gather")
    position = 0
    if node is not None and node.op_type == "Gather":
        index = Constants().scalar(node.inputs[1])
        node = producer_of(node.inputs[0], "Shape")
        if not isinstance(index, int):
            return None
        position = index
    elif value is None or value.shape is None or value.shape.dims != (1,):
        return None
    source = node.inputs[0] if node is not None else None
    if node is None or source is None or source.shape is None:
        return None
    end = node.attributes.get("end")
    begin = node.attributes.get_int("start", 0)
    dims = source.shape.dims[begin : end.as_int() if end is not None else None]
    return dims[position] if -len(dims) <= position < len(dims) else None
