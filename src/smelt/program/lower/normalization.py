"""Lowers Softmax and the normalizations, with non-negative axes."""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir.listed_axes import AXES_OF_NORM
from smelt.ir.scope import is_dead
from smelt.program.instruction import Dim
from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

SOFTMAX_BY_AXIS = 13
"""The first opset whose Softmax works along one axis; before, it covers all axes from ``axis``
on."""


@lowers("Softmax", "LogSoftmax", "Hardmax")
def softmax(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Softmax with ``axis`` >= 0.

    Before opset 13, it covers all dims from ``axis`` on; these are merged into one by a Reshape.
    """
    source = cx.slot(node.inputs[0])
    shape = cx.shape(source)
    if cx.opset >= SOFTMAX_BY_AXIS:
        cx.keep(node, axis=cx.axis(node.attributes.get_int("axis", -1), max(len(shape), 1)))
        return
    axis = cx.axis(node.attributes.get_int("axis", 1), len(shape))
    if axis == len(shape) - 1:
        cx.keep(node, axis=axis)
        return
    matrix = (_product(cx, shape[:axis]), _product(cx, shape[axis:]))
    flat = cx.emit_new("Reshape", (source,), matrix)
    result = cx.emit_new(node.op_type, (flat,), matrix, axis=1)
    cx.emit("Reshape", (result,), (cx.define(node.outputs[0]),))


def _product(cx: ProgramBuilder, dims: tuple[Dim, ...]) -> Dim:
    """Return the product of ``dims``, which may be symbolic."""
    symbolic = [dim for dim in dims if not isinstance(dim, int)]
    static = math.prod(dim for dim in dims if isinstance(dim, int))
    product: Dim = static
    for dim in symbolic:
        product = dim * product
    return product


@lowers("BatchNormalization")
def batch_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``(x - mean) / sqrt(var + epsilon) * scale + bias`` along dim 1; a vector has 1 channel.

    Before opset 14, a node with more than one output, read or not, is in training mode.
    """
    if node.attributes.get_int("spatial", 1) != 1:
        raise cx.refuse("it has spatial=0, which ONNX has since removed")
    if node.attributes.get_int("training_mode", 0) and cx.opset >= 14:
        _in_training(cx, node)
        return
    if len(node.outputs) > 1:
        raise cx.refuse("it is in training mode, which smelt lowers from opset 14 on")
    epsilon = node.attributes.get_float("epsilon", 1e-5)
    m = Steps(cx)
    x, *parameters = (m.array(value) for value in node.inputs)
    if len(x.shape) == 1:
        scale, bias, mean, variance = parameters
        m.set_output(node.outputs[0], (x - mean) / m.op("Sqrt", variance + epsilon) * scale + bias)
        return
    cx.emit(node.op_type, cx.inputs(node), (cx.define(node.outputs[0]),), epsilon=epsilon)


def _in_training(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a BatchNormalization in training mode.

    It normalizes by mean and variance of the batch. Further outputs are the running mean and
    variance: ``old * momentum + of the batch * (1 - momentum)``.
    """
    m = Steps(cx)
    x, *parameters = (m.array(value) for value in node.inputs)
    shape = m.sizes(x)
    reduced_axes = [i for i in range(len(shape)) if i != 1]
    if 0 in shape:
        raise cx.refuse("the mean of a batch without elements is not defined")
    dtype = x.dtype
    widened = [array.cast(_wide(array.dtype)) for array in (x, *parameters)]
    column = (1, shape[1], *(1,) * (len(shape) - 2))
    scale, bias, *running = widened[1:]
    mean = widened[0].reduce("ReduceMean", *reduced_axes)
    centred = widened[0] - mean.reshape(*column)
    variance = (centred * centred).reduce("ReduceMean", *reduced_axes)
    deviation = m.op("Sqrt", variance + node.attributes.get_float("epsilon", 1e-5))
    result = centred / deviation.reshape(*column) * scale.reshape(*column) + bias.reshape(*column)
    m.set_output(node.outputs[0], result.cast(dtype))
    momentum = node.attributes.get_float("momentum", 0.9)
    statistics = (mean, variance)
    for value, old, array, batch_statistic in zip(
        node.outputs[1:], running, parameters[2:], statistics, strict=False
    ):
        m.set_output(value, (old * momentum + batch_statistic * (1 - momentum)).cast(array.dtype))


def _wide(dtype: ir.DataType) -> ir.DataType:
    """Return the type in which means of ``dtype`` are computed."""
    return dtype if dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT


@lowers("InstanceNormalization")
def instance_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a normalization over all spatial dims of each sample and channel."""
    cx.keep(node, epsilon=node.attributes.get_float("epsilon", 1e-5))


@lowers("LayerNormalization", "RMSNormalization")
def layer_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a normalization over all dims from ``axis``; unread means and deviations are left
    out."""
    outputs = list(node.outputs)
    while len(outputs) > 1 and is_dead(outputs[-1]):
        outputs.pop()
    cx.emit(
        node.op_type,
        cx.inputs(node),
        [cx.define(value) for value in outputs],
        axis=cx.axis(node.attributes.get_int("axis", -1), cx.rank(node.inputs[0])),
        epsilon=node.attributes.get_float("epsilon", 1e-5),
        stash_type=node.attributes.get_int("stash_type", 1),
    )


@lowers("MeanVarianceNormalization")
def mean_variance_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``(x - mean) / (deviation + 1e-9)``, where the variance is the mean of
    ``(x - mean)^2``, as in ONNX Runtime.

    The formula of ONNX, the mean of squares minus the squared mean, cancels for numbers far from 0.
    """
    m = Steps(cx)
    x = m.array(node.inputs[0])
    axes = cx.axes(node.attributes.get_ints("axes", AXES_OF_NORM), len(x.shape))
    widened = x.cast(_wide(x.dtype))
    centred = widened - widened.reduce("ReduceMean", *axes, keep=True)
    variance = (centred * centred).reduce("ReduceMean", *axes, keep=True)
    m.set_output(node.outputs[0], (centred / (m.op("Sqrt", variance) + 1e-9)).cast(x.dtype))


@lowers("GroupNormalization")
def group_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a normalization over groups of channels; scale and bias are per channel (opset 21)."""
    if cx.opset < 21:
        raise cx.refuse(
            "it is a GroupNormalization before opset 21, with one scale and bias per group"
        )
    cx.keep(
        node,
        num_groups=node.attributes.get_int("num_groups", 1),
        epsilon=node.attributes.get_float("epsilon", 1e-5),
        stash_type=node.attributes.get_int("stash_type", 1),
    )


@lowers("LRN")
def local_response_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``x / (bias + alpha / size * sum of squares) ** beta``, with sums across channels."""
    cx.keep(
        node,
        alpha=node.attributes.get_float("alpha", 1e-4),
        beta=node.attributes.get_float("beta", 0.75),
        bias=node.attributes.get_float("bias", 1.0),
        size=node.attributes.get_int("size", 1),
    )


@lowers("LpNormalization")
def lp_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the input divided by its norm along ``axis``; 0 where the norm is 0."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    axis, p = (
        cx.axis(node.attributes.get_int("axis", -1), len(x.shape)),
        node.attributes.get_int("p", 2),
    )
    if p not in (1, 2):
        raise cx.refuse(f"smelt does not lower the norm p={p}")
    norm = x.reduce(f"ReduceL{p}", axis, keep=True)
    m.set_output(node.outputs[0], m.op("Where", m.op("Equal", norm, 0.0), 0.0, x / norm))
