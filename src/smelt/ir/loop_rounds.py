"""The number of iterations of a Loop, if it is constant."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

MOST = 2**31
"""Larger trip counts are not meant literally: exporters write them for "until the condition
fails"."""


def trip_count(node: ir.Node) -> int | None:
    """Return the trip count of a Loop if it is constant and the condition stays true, else None.

    The condition stays true if the body returns it unchanged, or returns a constant that is true.
    """
    attr = node.attributes.get("body")
    count = _number(node.inputs[0])
    if attr is None or attr.is_ref() or count is None or count >= MOST:
        return None
    body, first = attr.as_graph(), node.inputs[1]
    if first is not None and not _number(first):
        return None
    last: ir.Value | None = body.outputs[0]
    while last is not None and (producer := last.producer()) is not None:
        if producer.op_type != "Identity" or producer.domain:
            break
        last = producer.inputs[0]
    return max(count, 0) if last is body.inputs[1] or _number(last) else None


def runs_at_least_once(node: ir.Node) -> bool:
    """True if a Loop provably runs at least one iteration."""
    count, first_condition = node.inputs[:2]
    if first_condition is not None and not _number(first_condition):
        return False
    if count is None:
        return True
    number = _number(count)
    return number is not None and number > 0


def _number(value: ir.Value | None) -> int | None:
    """Return the element of a one-element constant, else None."""
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    if tensor is None or tensor.size != 1:
        return None
    return int(np.asarray(tensor.numpy()).reshape(()))
