"""Fold a constant that multiplies or divides a convolution into its weight and bias.

    before   x ─> Conv(W, b) ─> Mul(·, s) ─> y            after   x ─> Conv(W * s, b * s) ─> y

    before   x ─> Mul(·, s) ─> Conv(W, b) ─> y            after   x ─> Conv(W * s, b) ─> y

Needs    (1) a constant weight, and a constant with one element for each channel or one in all.
         They are combined in float64 and rounded once. A Transpose may be between the two, if the
         convolution comes first.
Keeps    (1) ``s / conv``; (2) a division by 0; (3) constants that vary along another axis or
         enlarge the result; (4) products that overflow; (5) scaled values with other readers;
         (6) a single number before a convolution: it may be part of a Gelu or HardSwish, which
         rules and runtimes match as a whole (behind a complete Swish, as in NF-nets, it is folded).
         The old weight stays for its other readers.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import producer_of
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.output_channels import (
    CONSTANT_WEIGHT,
    Convolution,
    convolution,
    perhaps_transposed,
)
from smelt.passes.convolution.rounded_product import round_product

_conv = perhaps_transposed(convolution(CONSTANT_WEIGHT))  # needs 1
_scale = const(name="scale", limit=None)


# keeps 1
@rule(one_of(op("Mul", _conv, _scale, commutative=True), op("Div", _conv, _scale)), same_shape=True)
def conv_times(m: Match, b: Builder) -> Replacement:
    """Fold a factor or divisor of the result into weight and bias."""
    conv, array = Convolution.of(m), m.array("scale", limit=None)
    if isinstance(conv, Miss):
        return conv
    if array is None:
        return Miss("the factor is not constant")
    scale = conv.per_channel(array)
    if scale is None:  # keeps 3
        return Miss("the factor varies along an axis other than the output channels")
    with np.errstate(all="ignore"):
        factor = 1 / scale if m.root.op_type == "Div" else scale
        bias = conv.exact_bias() * factor
    return conv.rebuild(b, factor, None if conv.bias is None else bias)  # keeps 2, 4


_moved = one_of(
    op("Mul", var("x"), _scale, commutative=True), op("Div", var("x"), _scale, name="quotient")
)


# needs 1, keeps 5
@rule(op(["Conv", "ConvTranspose"], _moved, CONSTANT_WEIGHT, rest=True), same_shape=True)
def conv_of_scaled(m: Match, b: Builder) -> Replacement:
    """Fold a factor or divisor of the input into the weight."""
    weight, array = m.array("weight", limit=None), m.array("scale", limit=None)
    if array is not None and array.size == 1 and not _is_swish(m["x"]):  # keeps 6
        return Miss("the constant is one number, which may be part of an activation")
    x, groups = m["x"], int(opset.attribute(m.root, "group", m.opset))
    if weight is None:
        return Miss("the weight is not constant")
    if array is None:
        return Miss("the factor of the input is not constant")
    if x.shape is None or x.dtype is None:
        return Miss("the rank or the element type of the input is not known")
    transposed = m.root.op_type == "ConvTranspose"
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    scale = _per_input_channel(array, channels, len(x.shape))
    if scale is None or weight.ndim != len(x.shape) or x.shape[1] != channels:  # keeps 3
        return Miss("the factor varies along an axis other than the input channels")
    with np.errstate(all="ignore"):
        factor = 1 / scale if m.get("quotient") is not None else scale
    # (groups, channels of the first axis per group, channels of the second axis, kernel): input
    # channels are the first axis of a ConvTranspose's weight, and the second one of a Conv's.
    blocks = weight.reshape(groups, -1, *weight.shape[1:])
    by_group = factor.reshape(groups, -1, 1) if transposed else factor.reshape(groups, 1, -1)
    broadcast_factor = by_group.reshape(*by_group.shape, *(1,) * (weight.ndim - 2))
    scaled = round_product(blocks, broadcast_factor, x.dtype.numpy())
    if scaled is None:  # keeps 2, 4
        return Miss(f"the new weight does not fit {x.dtype}")
    new = b.constant(scaled.reshape(weight.shape), name=m["weight"].name)
    return b.like(m.root, x, new, *m.root.inputs[2:])


def _is_swish(value: ir.Value) -> bool:
    """True for Swish, or for a value times its own sigmoid."""
    product = producer_of(value, "Mul", "Swish")
    if product is None or product.op_type == "Swish":
        return product is not None
    for x, gate in (product.inputs, product.inputs[::-1]):
        sigmoid = producer_of(gate, "Sigmoid")
        if sigmoid is not None and sigmoid.inputs[0] is x:
            return True
    return False


def _per_input_channel(array: np.ndarray, channels: int, rank: int) -> np.ndarray | None:
    """Return ``array``, which broadcasts to the input, as one float64 number for each input
    channel.

    None if it varies along another axis.
    """
    if array.ndim > rank or array.dtype.kind not in "fV":
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    if shape[1] not in (1, channels) or array.size != shape[1]:
        return None
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (channels,))


fuse_conv_scale = rule_pass(
    "fuse_conv_scale",
    __doc__,
    [conv_times, conv_of_scaled],
    exactness=rounding(8, "weights are scaled before the sum instead of after it"),
    source="Core ML MIL: common::fuse_conv_scale",
)
