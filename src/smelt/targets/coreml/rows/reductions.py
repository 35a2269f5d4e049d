"""Rows for reductions, softmax, cumulative sums and products, argmax and topk."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.facts import NARROW
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val

REDUCTIONS = {
    "ReduceL1": "reduce_l1_norm",
    "ReduceL2": "reduce_l2_norm",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
    "ReduceMax": "reduce_max",
    "ReduceMean": "reduce_mean",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod",
    "ReduceSum": "reduce_sum",
    "ReduceSumSquare": "reduce_sum_square",
}
OF_FLOATS = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"})
"""Reductions whose exact result is no integer, so that ONNX rounds it for integer operands."""
OF_ONE = {
    "ReduceL1": ("abs",),
    "ReduceL2": ("abs",),
    "ReduceLogSum": ("log",),
    "ReduceSumSquare": ("square",),
}
"""What a reduction over no axis does to each element; a reduction that is not listed does nothing.
"""


@writes(*REDUCTIONS)
def reduction(c: Call) -> None:
    """Write a reduction over constant axes, by default over all.

    With no axis, as for a scalar, each element is a group of its own. Bools are reduced as int32.
    """
    name = c.node.op_type
    x = c.x()
    if c.dtype() in NARROW and name not in ("ReduceMax", "ReduceMin"):
        c.refuse_narrow("a sum")
    if not x.is_float and name in OF_FLOATS:
        raise Refused("ONNX rounds this reduction of integers differently", "cast to float32")
    axes = _axes(c, x.rank)
    kind = x.element
    if kind == Element.BOOL:
        x = c.cast(x, Element.INT32)
    result = _of_elements(c, x) if not axes else _reduced(c, x, axes)
    c.done(c.cast(result, kind))


def _axes(c: Call, rank: int) -> list[int]:
    """Return the axes of a reduction of ``rank`` axes, from attribute or input; may be empty."""
    axes = c.attribute("axes") if "axes" in c.node.attributes else c.fixed_ints(1, "axes")
    if not axes:
        return [] if c.attribute("noop_with_empty_axes") else list(range(rank))
    return [axis % rank for axis in axes]


def _reduced(c: Call, x: Val, axes: list[int]) -> Val:
    """Return the node's reduction of ``x`` over ``axes``, which are not empty."""
    keep = bool(c.attribute("keepdims"))
    return c.reduce(REDUCTIONS[c.node.op_type], x, axes, keep=keep)


def _of_elements(c: Call, x: Val) -> Val:
    """Return the node's reduction of ``x`` over no axis, which applies to each element alone."""
    for op_type in OF_ONE.get(c.node.op_type, ()):
        x = (
            c.w.op("log", x.element, x.dims, x=x, epsilon=0.0)
            if op_type == "log"
            else c.op(op_type, x)
        )
    return x


@writes("GlobalAveragePool", "GlobalMaxPool")
def global_pool(c: Call) -> None:
    """Write a reduction over all dims after the channels."""
    x = c.x()
    op_type = "reduce_mean" if c.node.op_type == "GlobalAveragePool" else "reduce_max"
    c.done(c.reduce(op_type, x, range(2, x.rank)))


@writes("Softmax")
def softmax(c: Call) -> None:
    """Write softmax along its axis; below opset 13, over all dims from the axis on."""
    x, axis = c.x(), int(c.attribute("axis"))
    if c.facts.opset >= 13 or axis % x.rank == x.rank - 1:
        c.done(c.write("softmax", x=x, axis=axis))
        return
    axis %= x.rank
    if None in x.dims[axis:]:
        raise Refused("softmax over several dims of open sizes", "raise the model to opset 13")
    size = int(np.prod([d for d in x.dims[axis:] if d is not None]))
    flat = c.reshape(x, (*x.dims[:axis], size))
    soft = c.w.op("softmax", x.element, flat.dims, x=flat, axis=-1)
    c.done(c.reshape(soft, x.dims))


@writes("LogSoftmax")
def log_softmax(c: Call) -> None:
    """Write x - max - log(sum(exp(x - max)))."""
    x, axis = c.x(), int(c.attribute("axis"))
    if c.facts.opset < 13 and axis % x.rank != x.rank - 1:
        raise Refused("it flattens dims, as in opsets below 13", "raise the model to opset 13")
    shifted = c.op("sub", x, c.reduce("reduce_max", x, [axis]))
    total = c.reduce("reduce_sum", c.op("exp", shifted), [axis])
    logarithm = c.w.op("log", x.element, total.dims, x=total, epsilon=0.0)
    c.done(c.write("sub", x=shifted, y=logarithm))


@writes("Hardmax")
def hardmax(c: Call) -> None:
    """Write 1 at the first maximum along the axis, else 0."""
    x, axis = c.x(), int(c.attribute("axis"))
    if c.facts.opset < 13 and axis % x.rank != x.rank - 1:
        raise Refused("it flattens dims, as in opsets below 13", "raise the model to opset 13")
    axis %= x.rank
    count = x.dims[axis]
    if count is None:
        raise Refused("the size of its axis is open")
    first = _first(c, "reduce_argmax", x, axis, keep=True)
    places = np.arange(count, dtype=np.int32).reshape([-1] + [1] * (x.rank - 1 - axis))
    c.done(c.cast(c.op("equal", first, places, element=Element.BOOL), x.element))


def _first(c: Call, op_type: str, x: Val, axis: int, *, keep: bool) -> Val:
    """Return the index of the first extreme element along ``axis`` as int32.

    ``op_type`` is reduce_argmax or reduce_argmin; ``keep`` leaves a dim of 1.
    """
    dims = tuple(
        1 if place == axis else size for place, size in enumerate(x.dims) if keep or place != axis
    )
    more: dict[str, Any] = {"output_dtype": "int32"} if c.w.ios >= 17 else {}
    return c.w.op(op_type, Element.INT32, dims, x=x, axis=axis, keep_dims=keep, **more)


@writes("ArgMax", "ArgMin")
def argument(c: Call) -> None:
    """Write reduce_argmax or reduce_argmin, which return the first of equal elements.

    For ``select_last_index``, the axis is reversed first: the last element is then the first. Its
    place is counted from the end, so it is subtracted from ``size - 1``.
    """
    op_type = f"reduce_{c.node.op_type.lower()}"
    x = c.x()
    axis, keep = int(c.attribute("axis")) % x.rank, bool(c.attribute("keepdims"))
    if not c.attribute("select_last_index"):
        c.done(_first(c, op_type, x, axis, keep=keep))
        return
    backwards = c.w.op("reverse", x.element, x.dims, x=x, axes=[axis])
    place = _first(c, op_type, backwards, axis, keep=keep)
    size = x.dims[axis]
    last = c.w.constant(np.int32(size - 1)) if size is not None else c.op("sub", c.size(x, axis), 1)
    c.done(c.op("sub", last, place))


@writes("CumSum")
def cumulative_sum(c: Call) -> None:
    """Write cumsum along a constant axis."""
    c.refuse_narrow("a sum")
    axis = c.fixed_ints(1, "axis")
    assert axis is not None
    exclusive, reverse = bool(c.attribute("exclusive")), bool(c.attribute("reverse"))
    x = c.x()
    c.done(c.write("cumsum", x=x, axis=axis[0] % x.rank, exclusive=exclusive, reverse=reverse))


MOST_FACTORS = 64
"""A running product of more elements is not written."""


@writes("CumProd")
def cumulative_product(c: Call) -> None:
    """Split the axis into its elements and write a product for each of them."""
    c.refuse_narrow("a product")
    x, axes = c.x(), c.fixed_ints(1, "axis")
    assert axes is not None
    axis = axes[0] % x.rank
    count = x.dims[axis]
    if count is None or count > MOST_FACTORS:
        raise Refused(f"it multiplies along an open axis, or along more than {MOST_FACTORS}")
    part = (*x.dims[:axis], 1, *x.dims[axis + 1 :])
    parts = c.w.ops("split", [(x.element, part)] * count, x=x, num_splits=count, axis=axis)
    if c.attribute("reverse"):
        parts.reverse()
    products = parts[:1]
    for factor in parts[1:]:
        products.append(c.op("mul", products[-1], factor))
    if c.attribute("exclusive"):
        if None in part:
            raise Refused("it has open sizes")
        ones = np.ones([size or 1 for size in part])
        products = [c.constant(ones, x.element, "ones"), *products[:-1]]
    if c.attribute("reverse"):
        products.reverse()
    c.done(c.w.op("concat", x.element, x.dims, values=products, axis=axis, interleave=False))


@writes("TopK")
def top_k(c: Call) -> None:
    """Write topk with a constant count."""
    count = c.fixed_ints(1, "count")
    assert count is not None
    x = c.x()
    axis = int(c.attribute("axis")) % x.rank
    inputs: dict[str, Any] = {
        "k": count[0],
        "axis": axis,
        "ascending": not c.attribute("largest"),
        "sort": True,
        "return_indices": True,
    }
    if c.w.ios >= 17:
        inputs["output_indices_dtype"] = "int32"
    elif not x.is_float:
        raise Refused("topk of integers needs iOS 17")
    dims = tuple(count[0] if place == axis else size for place, size in enumerate(x.dims))
    label = c.node.outputs[0].name or "topk"
    c.done(*c.w.ops("topk", [(x.element, dims), (Element.INT32, dims)], name=label, x=x, **inputs))


@writes("LpNormalization")
def lp_normalization(c: Call) -> None:
    """Write a division by the norm along an axis; a vector of zeros is divided by 1."""
    x, axis = c.x(), int(c.attribute("axis"))
    order = int(c.attribute("p"))
    norm = c.reduce("reduce_l1_norm" if order == 1 else "reduce_l2_norm", x, [axis])
    is_zero = c.op("equal", norm, 0.0, element=Element.BOOL)
    one = c.w.constant(np.asarray(1, x.element.numpy))
    c.done(c.write("real_div", x=x, y=c.select(is_zero, one, norm, x.element)))
