"""Readers of reductions, and of operators that sort or accumulate along an axis."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import READERS, reads
from smelt.frontends.coreml.types import WORDS

REDUCTIONS = {
    "reduce_l1_norm": "ReduceL1",
    "reduce_l2_norm": "ReduceL2",
    "reduce_log_sum": "ReduceLogSum",
    "reduce_log_sum_exp": "ReduceLogSumExp",
    "reduce_max": "ReduceMax",
    "reduce_mean": "ReduceMean",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_sum": "ReduceSum",
    "reduce_sum_square": "ReduceSumSquare",
}


def _reduce(call: Call, op_type: str) -> ir.Value:
    """Return the reduction ``op_type`` over ``axes``, by default over all; none if they
    are empty.
    """
    axes = None
    if call.has("axes"):
        axes = call.ints(call.integers("axes"))
    keepdims = int(call.flag("keep_dims"))
    noop = 1 if axes is not None else None
    return call.op(op_type, call.x, axes, keepdims=keepdims, noop_with_empty_axes=noop)


READERS.update({name: partial(_reduce, op_type=kind) for name, kind in REDUCTIONS.items()})


def index_type(call: Call, name: str) -> ir.DataType:
    """Return the element type of indices that the parameter ``name`` gives, int32 by default."""
    word = call.word(name, "int32")
    if word not in ("int32", "uint16", "int16"):
        raise call.refused(f"there are no indices of type {word!r}")
    return WORDS[word]


def _arg(call: Call, op_type: str) -> ir.Value:
    """Return the index of the largest or smallest element along ``axis``, the first of equals."""
    axis, keepdims = call.integer("axis", -1), int(call.flag("keep_dims"))
    indices = call.op(op_type, call.x, axis=axis, keepdims=keepdims)
    return call.builder.cast(indices, index_type(call, "output_dtype"))


READERS["reduce_argmax"] = partial(_arg, op_type="ArgMax")
READERS["reduce_argmin"] = partial(_arg, op_type="ArgMin")


def _size(call: Call, axis: int) -> ir.Value:
    """Return the size of ``axis`` of ``x`` as a vector of one element."""
    return call.builder.size(call.x, axis)


@reads("argsort")
def _argsort(call: Call) -> ir.Value:
    """Return the indices that sort ``x`` along ``axis``, descending unless ``ascending``."""
    axis = call.axis("axis", call.rank(call.x), -1)
    _, indices = call.builder.ops(
        "TopK",
        call.x,
        _size(call, axis),
        outputs=2,
        axis=axis,
        largest=int(not call.flag("ascending")),
    )
    return call.builder.cast(indices, call.result_type())


@reads("topk")
def _topk(call: Call) -> list[ir.Value]:
    """Return the ``k`` largest elements along ``axis`` and, if asked for, their indices.

    They are the smallest if ``ascending``, and all elements if ``k`` is -1.
    """
    axis = call.axis("axis", call.rank(call.x), -1)
    constant = call.constant("k")
    if call.has("k") and constant is None:
        count = call.op("Reshape", call.i64("k"), call.ints([1]))
    else:
        k = call.integer("k", 1)
        count = _size(call, axis) if k == -1 else call.ints([k])
    values, indices = call.builder.ops(
        "TopK",
        call.x,
        count,
        outputs=2,
        axis=axis,
        largest=int(not call.flag("ascending")),
        sorted=int(call.flag("sort", True)),
    )
    if not call.flag("return_indices", True):
        return [values]
    return [values, call.builder.cast(indices, index_type(call, "output_indices_dtype"))]


@reads("cumsum")
def _cumsum(call: Call) -> ir.Value:
    """Return the cumulative sums along ``axis``."""
    axis = call.axis("axis", call.rank(call.x), 0)
    exclusive, reverse = int(call.flag("exclusive")), int(call.flag("reverse"))
    return call.op("CumSum", call.x, call.ints(axis), exclusive=exclusive, reverse=reverse)
