"""Readers of lists. A list of tensors of one shape becomes one tensor, stacked along axis 0.

A list of dynamic length is noted in ``Shared.growing``; a write beyond its end lengthens it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.lowering import tensor_type
from smelt.frontends.coreml.registry import reads
from smelt.frontends.coreml.types import onnx_type


@reads("make_list")
def _make_list(call: Call) -> ir.Value:
    """Return a list of ``init_length`` elements, all 0."""
    kind = tensor_type(call.operation.outputs[0].type)
    dims: list[int] = []
    for argument in call.arguments.get("elem_shape", ()):
        known = call.scope.known(argument)
        array = None if isinstance(known, ir.Value) else np.asarray(known.value)
        if array is None or array.dtype.kind not in "iu":
            raise call.refused("the shape of its elements is open")
        dims += array.reshape(-1).tolist()
    length = call.i64("init_length") if call.has("init_length") else call.ints(1)
    length = call.op("Reshape", length, call.ints([1]))
    shape = call.op("Concat", length, call.ints(dims), axis=0) if dims else length
    zero = ir.Tensor(np.zeros(1, onnx_type(kind.element).numpy()))
    items = call.op("ConstantOfShape", shape, value=zero)
    if call.flag("dynamic_length", True):
        call.scope.shared.growing.add(items)
    return items


def _grown(call: Call, items: ir.Value, needed: ir.Value) -> ir.Value:
    """Return the list ``items``, padded by elements of 0 to at least ``needed`` elements.

    ``needed`` is int64 of shape (1,).
    """
    missing = call.op("Sub", needed, call.builder.size(items, 0))
    missing = call.op("Max", missing, call.ints([0]))
    rank = call.rank(items)
    parts = [call.ints([0] * rank), missing]
    if rank > 1:
        parts.append(call.ints([0] * (rank - 1)))
    return call.op("Pad", items, call.op("Concat", *parts, axis=0))


def _kept(call: Call, items: ir.Value) -> ir.Value:
    """Return ``items``, an update of the list ``ls``, after noting that it grows if ``ls`` does."""
    if call.value("ls") in call.scope.shared.growing:
        call.scope.shared.growing.add(items)
    return items


@reads("list_write")
def _list_write(call: Call) -> ir.Value:
    """Return the list with ``value`` at ``index``; a growing list is padded up to there."""
    items, index = call.value("ls"), call.op("Reshape", call.i64("index"), call.ints([1, 1]))
    if items in call.scope.shared.growing:
        needed = call.op("Add", call.op("Reshape", index, call.ints([1])), call.ints([1]))
        items = _grown(call, items, needed)
    update = call.op("Unsqueeze", call.value("value"), call.ints([0]))
    return _kept(call, call.op("ScatterND", items, index, update))


@reads("list_scatter")
def _list_scatter(call: Call) -> ir.Value:
    """Return the list with the rows of ``value`` at ``indices``."""
    items, indices = call.value("ls"), call.i64("indices")
    if items in call.scope.shared.growing:
        last = call.op("ReduceMax", indices, keepdims=1)
        items = _grown(call, items, call.op("Add", last, call.ints([1])))
    column = call.op("Unsqueeze", indices, call.ints([1]))
    return _kept(call, call.op("ScatterND", items, column, call.value("value")))


@reads("list_read")
def _list_read(call: Call) -> ir.Value:
    """Return the element at ``index``."""
    index = call.op("Reshape", call.i64("index"), call.ints([]))
    return call.op("Gather", call.value("ls"), index, axis=0)


@reads("list_gather")
def _list_gather(call: Call) -> ir.Value:
    """Return the elements at ``indices``."""
    return call.op("Gather", call.value("ls"), call.i64("indices"), axis=0)


@reads("list_length")
def _list_length(call: Call) -> ir.Value:
    """Return the number of elements."""
    size = call.builder.size(call.value("ls"), 0)
    return call.builder.cast(call.op("Squeeze", size, call.ints([0])), call.result_type())
