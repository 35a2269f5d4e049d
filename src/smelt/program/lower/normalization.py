"""Softmax and the normalizations, with axes counted from the front."""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.program.instruction import Dim
from smelt.program.lower.lowering import Lowering, float_of, int_of, is_used, lowers

SOFTMAX_BY_AXIS = 13
"""The opset since which Softmax works along one axis; before, over all from ``axis`` on."""


@lowers("Softmax", "LogSoftmax", "Hardmax")
def softmax(cx: Lowering, node: ir.Node) -> None:
    """``axis`` counts from the front; the older meaning goes through a matrix."""
    source = cx.slot(node.inputs[0])
    shape = cx.shape(source)
    if cx.opset >= SOFTMAX_BY_AXIS:
        cx.keep(node, axis=cx.axis(int_of(node, "axis", -1), max(len(shape), 1)))
        return
    axis = cx.axis(int_of(node, "axis", 1), len(shape))
    if axis == len(shape) - 1:
        cx.keep(node, axis=axis)
        return
    matrix = (_product(cx, shape[:axis]), _product(cx, shape[axis:]))
    flat = cx.emit_new("Reshape", (source,), matrix)
    result = cx.emit_new(node.op_type, (flat,), matrix, axis=1)
    cx.emit("Reshape", (result,), (cx.define(node.outputs[0]),))


def _product(cx: Lowering, dims: tuple[Dim, ...]) -> Dim:
    symbolic = [dim for dim in dims if not isinstance(dim, int)]
    static = math.prod(dim for dim in dims if isinstance(dim, int))
    product: Dim = static
    for dim in symbolic:
        product = dim * product
    return product


@lowers("BatchNormalization")
def batch_normalization(cx: Lowering, node: ir.Node) -> None:
    """Inference: ``(x - mean) / sqrt(var + epsilon) * scale + bias`` along dim 1.

    Before opset 14 it trains if it has more outputs, read or not.
    """
    if int_of(node, "training_mode", 0) or len(node.outputs) > 1:
        raise cx.refuse("a BatchNormalization that trains")
    if int_of(node, "spatial", 1) != 1:
        raise cx.refuse("spatial=0, which ONNX has since removed")
    inputs, output = cx.inputs(node), cx.define(node.outputs[0])
    cx.emit(node.op_type, inputs, (output,), epsilon=float_of(node, "epsilon", 1e-5))


@lowers("InstanceNormalization")
def instance_normalization(cx: Lowering, node: ir.Node) -> None:
    """Over all spatial dims of each sample and channel."""
    cx.keep(node, epsilon=float_of(node, "epsilon", 1e-5))


@lowers("LayerNormalization", "RMSNormalization")
def layer_normalization(cx: Lowering, node: ir.Node) -> None:
    """Over all dims from ``axis`` on; the mean and deviation only if something reads them."""
    source = node.inputs[0]
    assert source is not None
    outputs = list(node.outputs)
    while len(outputs) > 1 and not is_used(outputs[-1]):
        outputs.pop()
    cx.emit(
        node.op_type,
        cx.inputs(node),
        [cx.define(value) for value in outputs],
        axis=cx.axis(int_of(node, "axis", -1), cx.rank(source)),
        epsilon=float_of(node, "epsilon", 1e-5),
        stash_type=int_of(node, "stash_type", 1),
    )


@lowers("GroupNormalization")
def group_normalization(cx: Lowering, node: ir.Node) -> None:
    """Over groups of channels; scale and bias have one number a channel (opset 21)."""
    if cx.opset < 21:
        raise cx.refuse("before opset 21 scale and bias had one number a group")
    cx.keep(
        node,
        num_groups=int_of(node, "num_groups", 1),
        epsilon=float_of(node, "epsilon", 1e-5),
        stash_type=int_of(node, "stash_type", 1),
    )


@lowers("LRN")
def local_response_normalization(cx: Lowering, node: ir.Node) -> None:
    """Across channels: ``x / (bias + alpha / size * sum of squares) ** beta``."""
    cx.keep(
        node,
        alpha=float_of(node, "alpha", 1e-4),
        beta=float_of(node, "beta", 0.75),
        bias=float_of(node, "bias", 1.0),
        size=int_of(node, "size", 1),
    )
