"""Decompositions of normalizations and reductions into means, sums and elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.decompositions.row import Body, Call, Row


def _normal(c: Call, x: ir.Value, axes: Sequence[int], *, centred: bool = True) -> ir.Value:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` along ``axes``.

    Without ``centred``, no mean is subtracted, and the variance is the mean square.
    """
    b = c.b
    if centred:
        x = b.op("Sub", x, b.mean(x, axes))
    variance = b.mean(b.op("Mul", x, x), axes)
    epsilon = float(c.attributes["epsilon"])
    return c.op("Div", x, c.op("Sqrt", c.op("Add", variance, epsilon)))


def _is_wide(c: Call) -> bool:
    """True for float and double.

    ONNX computes means and variances of half floats in float, because squares would overflow; the
    operators written here would compute them in the half type.
    """
    return c[0].dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def _layer(c: Call) -> ir.Value | None:
    """Return a normalization of the last axes, with scale and bias; None for further outputs."""
    rank = c.rank()
    if rank is None or not _is_wide(c) or len(c.node.outputs) > 1:
        return None
    axes = range(c.attributes["axis"] % rank, rank)
    is_centred = c.node.op_type == "LayerNormalization"
    result = c.op("Mul", _normal(c, c[0], axes, centred=is_centred), c[1])
    bias = c.get(2)
    return result if bias is None else c.op("Add", result, bias)


def _by_channel(c: Call, value: ir.Value) -> ir.Value:
    """Return a vector of channels in a shape that broadcasts against the first input, whose rank
    is known."""
    rank = c.rank()
    assert rank is not None
    return c.b.op("Reshape", value, c.b.const_i64([-1, *(1 for _ in range(rank - 2))]))


def _instance(c: Call) -> ir.Value | None:
    """Return a normalization of each channel of each sample; None without spatial dims."""
    rank = c.rank()
    if rank is None or rank < 3 or not _is_wide(c):
        return None
    result = _normal(c, c[0], range(2, rank))
    return c.op("Add", c.op("Mul", result, _by_channel(c, c[1])), _by_channel(c, c[2]))


def _group(c: Call) -> ir.Value | None:
    """Return a normalization of groups; from opset 21 on, each channel has a scale."""
    sizes, groups = c.sizes(), c.attributes["num_groups"]
    if sizes is None or c.sizes(c[1]) != sizes[1:2] or not _is_wide(c):
        return None
    parted = c.b.op("Reshape", c[0], c.b.const_i64([sizes[0], groups, -1]))
    normal = c.b.op("Reshape", _normal(c, parted, [2]), c.b.const_i64(sizes))
    return c.op("Add", c.op("Mul", normal, _by_channel(c, c[1])), _by_channel(c, c[2]))


def _batch(c: Call) -> ir.Value | None:
    """Return a BatchNormalization as ``x * factor + offset`` by channel.

    None unless scale, bias, mean and variance are constants, and the scale has the type of the
    input.
    """
    parameters = [c.constants.get(c[index], None) for index in range(1, 5)]
    if any(each is None for each in parameters) or c.attributes.get("training_mode"):
        return None
    if c[1].dtype != c[0].dtype or c.rank() is None:
        return None
    scale, bias, mean, variance = (each for each in parameters if each is not None)
    factor = scale / np.sqrt(variance.astype(np.float64) + c.attributes["epsilon"])
    offset = bias - mean * factor
    rows = [c.b.constant(each.astype(scale.dtype)) for each in (factor, offset)]
    return c.op("Add", c.op("Mul", c[0], _by_channel(c, rows[0])), _by_channel(c, rows[1]))


def _reduced(before: str, after: str = "") -> Body:
    """Return the body of a ReduceSum of x * x or abs(x), followed by ``after``.

    ``_reduced("Mul", "Sqrt")`` is the body of ReduceL2.
    """

    def body(c: Call) -> ir.Value | None:
        """Build the reduction of floats with the attributes and axes of the node."""
        if not c.is_float():
            return None
        x = c.op("Mul", c[0], c[0]) if before == "Mul" else c.op("Abs", c[0])
        attributes = {each.name: each.value for each in c.node.attributes.values()}
        axes = list(c.node.inputs[1:])
        if "axes" in attributes:  # an attribute before opset 18, for ReduceSum an input from 13 on
            axes = [c.b.const_i64(attributes.pop("axes"))]
        result = c.b.op("ReduceSum", x, *axes, **attributes)
        return c.op(after, result) if after else result

    return body


def _sum(c: Call) -> ir.Value | None:
    """Return the mean of floats times the number of summed elements; None for unknown sizes."""
    sizes, rank = c.sizes(), c.rank()
    axes = c.ints(1) if c.get(1) is not None else c.attributes.get("axes")
    if sizes is None or rank is None or (c.get(1) is not None and axes is None):
        return None
    if not axes and c.attributes.get("noop_with_empty_axes"):
        return None
    summed = sorted({axis % rank for axis in axes or range(rank)})
    count = math.prod(sizes[axis] for axis in summed)
    if count == 0 or not _is_wide(c):  # a sum of nothing is 0, and a mean of it NaN
        return None
    return c.op("Mul", c.b.mean(c[0], summed, keepdims=c.attributes["keepdims"]), float(count))


def _minimum(c: Call) -> ir.Value | None:
    """Return the negated maximum of negated floats; None for integers."""
    if not c.is_float():
        return None
    attributes = {each.name: each.value for each in c.node.attributes.values()}
    maximum = c.b.op("ReduceMax", c.op("Mul", c[0], -1.0), *c.node.inputs[1:], **attributes)
    return c.op("Mul", maximum, -1.0)


def _pooled(c: Call) -> ir.Value | None:
    """Return the mean over the spatial dims; None without any."""
    rank = c.rank()
    return None if rank is None or rank < 3 else c.b.mean(c[0], range(2, rank))


MOMENTS = "ReduceMean Sub Mul Add Sqrt Div"

ROWS: Mapping[str, tuple[Row, ...]] = {
    "BatchNormalization": (Row("Mul Add Reshape", _batch),),
    "GlobalAveragePool": (Row("ReduceMean", _pooled),),
    "GroupNormalization": (Row(f"{MOMENTS} Reshape", _group),),
    "InstanceNormalization": (Row(f"{MOMENTS} Reshape", _instance),),
    "LayerNormalization": (Row(MOMENTS, _layer),),
    "RMSNormalization": (Row("ReduceMean Mul Add Sqrt Div", _layer),),
    "ReduceL1": (Row("ReduceSum Abs", _reduced("Abs")),),
    "ReduceL2": (Row("ReduceSum Mul Sqrt", _reduced("Mul", "Sqrt")),),
    "ReduceMin": (Row("ReduceMax Mul", _minimum),),
    "ReduceSum": (Row("ReduceMean Mul", _sum),),
    "ReduceSumSquare": (Row("ReduceSum Mul", _reduced("Mul")),),
}
