"""Readers of gathers and scatters."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


def _indices(call: Call) -> ir.Value:
    """Return the indices as int64; raises E121 for negative constants from iOS 17 on.

    From then on, a negative index does not count from the end, but is out of bounds.
    """
    constant = call.constant("indices")
    if constant is not None and call.scope.shared.ios >= 17:
        array = np.asarray(constant.value)
        if array.size and array.min() < 0:
            raise call.refused(f"the index {array.min()} is out of bounds since iOS 17")
    return call.i64("indices")


@reads("gather")
def _gather(call: Call) -> ir.Value:
    """Return the slices of ``x`` at ``indices`` along ``axis``.

    With ``batch_dims``, each entry of the leading dims, which both operands share, has indices of
    its own. ONNX's GatherND does this if ``axis`` follows the batch dims, so it is moved there.
    """
    rank = call.rank(call.x)
    axis, batch = call.axis("axis", rank, 0), call.integer("batch_dims", 0)
    indices = _indices(call)
    if not batch:
        return call.op("Gather", call.x, indices, axis=axis)
    if not 0 < batch <= min(axis, call.rank(indices)):
        raise call.refused(f"batch_dims {batch} does not fit axis {axis}")
    between = range(batch, axis)
    perm = [*range(batch), axis, *between, *range(axis + 1, rank)]
    axis_first = call.transposed(call.x, perm)
    column = call.op("Unsqueeze", indices, call.ints([-1]))
    result = call.op("GatherND", axis_first, column, batch_dims=batch)
    # The result is (batch, other dims of the indices, dims before axis, dims behind it).
    own, middle = call.rank(indices) - batch, axis - batch
    total = batch + own + middle + rank - axis - 1
    back = [
        *range(batch),
        *range(batch + own, batch + own + middle),
        *range(batch, batch + own),
        *range(batch + own + middle, total),
    ]
    return call.transposed(result, back)


@reads("gather_along_axis")
def _gather_along_axis(call: Call) -> ir.Value:
    """Return the elements of ``x`` at ``indices`` along ``axis``."""
    axis = call.axis("axis", call.rank(call.x), 0)
    return call.op("GatherElements", call.x, _indices(call), axis=axis)


@reads("gather_nd")
def _gather_nd(call: Call) -> ir.Value:
    """Return the slices of ``x`` at the index tuples along the last axis of ``indices``."""
    batch = call.integer("batch_dims", 0)
    return call.op("GatherND", call.x, _indices(call), batch_dims=batch or None)


_REDUCTIONS = {"update": None, "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _scatter_by(
    call: Call, op_type: str, data: ir.Value, indices: ir.Value, updates: ir.Value, axis: int | None
) -> ir.Value:
    """Return ``data`` with ``updates`` scattered into it, combined by the parameter ``mode``.

    ONNX lacks two modes: ``sub`` becomes an addition of negative updates, and ``div`` a division
    by the product of all updates of an element.
    """
    mode = call.word("mode", "add")

    def scatter(into: ir.Value, new: ir.Value, reduction: str | None) -> ir.Value:
        """Return ``new`` scattered into ``into`` by one ONNX node."""
        return call.op(op_type, into, indices, new, axis=axis, reduction=reduction)

    if mode == "sub":
        return scatter(data, call.op("Neg", updates), "add")
    if mode == "div":
        assert data.dtype is not None
        one = ir.Tensor(np.ones(1, data.dtype.numpy()))
        ones = call.op("ConstantOfShape", call.op("Shape", data), value=one)
        return call.op("Div", data, scatter(ones, updates, "mul"))
    if mode not in _REDUCTIONS:
        raise call.refused(f"its mode {mode!r} is unknown")
    return scatter(data, updates, _REDUCTIONS[mode])


@reads("scatter")
def _scatter(call: Call) -> ir.Value:
    """Return ``data`` with slices along ``axis`` updated at a vector of ``indices``.

    ONNX's ScatterND updates slices of the first axis, so ``axis`` is moved there and back.
    """
    data, updates = call.value("data"), call.value("updates")
    rank = call.rank(data)
    axis = call.axis("axis", rank, 0)
    perm = [axis, *(other for other in range(rank) if other != axis)]
    column = call.op("Unsqueeze", _indices(call), call.ints([-1]))
    axis_first, new = call.transposed(data, perm), call.transposed(updates, perm)
    result = _scatter_by(call, "ScatterND", axis_first, column, new, None)
    return call.transposed(result, [perm.index(each) for each in range(rank)])


@reads("scatter_along_axis")
def _scatter_along_axis(call: Call) -> ir.Value:
    """Return ``data`` with elements updated at ``indices`` along ``axis``."""
    data, updates = call.value("data"), call.value("updates")
    axis = call.axis("axis", call.rank(data), 0)
    return _scatter_by(call, "ScatterElements", data, _indices(call), updates, axis)


@reads("scatter_nd")
def _scatter_nd(call: Call) -> ir.Value:
    """Return ``data`` with slices updated at the index tuples along the last axis of
    ``indices``.
    """
    data, updates = call.value("data"), call.value("updates")
    return _scatter_by(call, "ScatterND", data, _indices(call), updates, None)
