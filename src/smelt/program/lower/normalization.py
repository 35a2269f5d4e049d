"""Softmax and the normalizations, with axes counted from the front."""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir.scope import is_dead
from smelt.program.instruction import Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

SOFTMAX_BY_AXIS = 13
"""The opset since which Softmax works along one axis; before, over all from ``axis`` on."""


@lowers("Softmax", "LogSoftmax", "Hardmax")
def softmax(cx: ProgramBuilder, node: ir.Node) -> None:
    """``axis`` counts from the front; the older meaning goes through a matrix."""
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
    symbolic = [dim for dim in dims if not isinstance(dim, int)]
    static = math.prod(dim for dim in dims if isinstance(dim, int))
    product: Dim = static
    for dim in symbolic:
        product = dim * product
    return product


@lowers("BatchNormalization")
def batch_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Inference: ``(x - mean) / sqrt(var + epsilon) * scale + bias`` along dim 1.

    Before opset 14 it trains if it has more outputs, read or not.
    """
    if node.attributes.get_int("training_mode", 0) or len(node.outputs) > 1:
        raise cx.refuse("a BatchNormalization that trains")
    if node.attributes.get_int("spatial", 1) != 1:
        raise cx.refuse("spatial=0, which ONNX has since removed")
    inputs, output = cx.inputs(node), cx.define(node.outputs[0])
    cx.emit(node.op_type, inputs, (output,), epsilon=node.attributes.get_float("epsilon", 1e-5))


@lowers("InstanceNormalization")
def instance_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Over all spatial dims of each sample and channel."""
    cx.keep(node, epsilon=node.attributes.get_float("epsilon", 1e-5))


@lowers("LayerNormalization", "RMSNormalization")
def layer_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Over all dims from ``axis`` on; the mean and deviation only if something reads them."""
    source = node.inputs[0]
    assert source is not None
    outputs = list(node.outputs)
    while len(outputs) > 1 and is_dead(outputs[-1]):
        outputs.pop()
    cx.emit(
        node.op_type,
        cx.inputs(node),
        [cx.define(value) for value in outputs],
        axis=cx.axis(node.attributes.get_int("axis", -1), cx.rank(source)),
        epsilon=node.attributes.get_float("epsilon", 1e-5),
        stash_type=node.attributes.get_int("stash_type", 1),
    )


@lowers("GroupNormalization")
def group_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Over groups of channels; scale and bias have one number a channel (opset 21)."""
    if cx.opset < 21:
        raise cx.refuse("before opset 21 scale and bias had one number a group")
    cx.keep(
        node,
        num_groups=node.attributes.get_int("num_groups", 1),
        epsilon=node.attributes.get_float("epsilon", 1e-5),
        stash_type=node.attributes.get_int("stash_type", 1),
    )


@lowers("LRN")
def local_response_normalization(cx: ProgramBuilder, node: ir.Node) -> None:
    """Across channels: ``x / (bias + alpha / size * sum of squares) ** beta``."""
    cx.keep(
        node,
        alpha=node.attributes.get_float("alpha", 1e-4),
        beta=node.attributes.get_float("beta", 0.75),
        bias=node.attributes.get_float("bias", 1.0),
        size=node.attributes.get_int("size", 1),
    )
