"""Fold a BatchNormalization into the convolution before it.

    before   x ─> Conv(W, b) ─> BatchNormalization(scale, bias, mean, var) ─> y
    after    x ─> Conv(W * s, (b - mean) * s + bias) ─> y        s = scale / sqrt(var + epsilon)

Needs    (1) constant parameters, combined in float64 and rounded once. Conv and ConvTranspose may
         have any rank and number of groups.
Keeps    (1) a normalization in training mode; (2) a convolution with other readers; (3) weights
         that overflow when scaled. The old weight stays for its other readers.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import const, op
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.output_channels import CONSTANT_WEIGHT, Convolution, convolution

_STATISTICS = ("scale", "shift", "mean", "variance")


@rule(
    op(
        "BatchNormalization",
        convolution(CONSTANT_WEIGHT),  # keeps 2
        *(const(name=name, limit=None) for name in _STATISTICS),  # needs 1
    ),
    min_opset=9,
    same_shape=True,
)
def conv_batchnorm(m: Match, b: Builder) -> Replacement:
    """Replace a convolution and its BatchNormalization by a convolution with new constants."""
    if _trains(m.root, m.opset):  # keeps 1
        return Miss("the BatchNormalization is in training mode")
    conv = Convolution.of(m)
    if isinstance(conv, Miss):
        return conv
    arrays = [m.array(name, limit=None) for name in _STATISTICS]
    if any(a is None or a.shape != (conv.channels,) for a in arrays):
        return Miss(
            "scale, bias, mean or variance is not a constant of one number for each output channel"
        )
    scale, shift, mean, variance = (a.astype(np.float64) for a in arrays if a is not None)
    with np.errstate(all="ignore"):
        epsilon = opset.attribute(m.root, "epsilon", m.opset)
        factor = scale / np.sqrt(variance + np.float64(np.float32(epsilon)))
        bias = (conv.exact_bias() - mean) * factor + shift
    folded = conv.rebuild(b, factor, bias)  # keeps 3
    unused_outputs = len(m.root.outputs) - 1
    if isinstance(folded, Miss) or unused_outputs == 0:
        return folded
    return (folded, *[None] * unused_outputs)


def _trains(node: ir.Node, version: int) -> bool:
    """True if the BatchNormalization is in training mode (before opset 14: has several outputs)."""
    if version < 14:
        return len(node.outputs) > 1
    return bool(opset.attribute(node, "training_mode", version))


fuse_conv_batchnorm = rule_pass(
    "fuse_conv_batchnorm",
    __doc__,
    [conv_batchnorm],
    exactness=rounding(16, "weights are scaled before the sum instead of after it"),
    source="Core ML MIL: common::fuse_conv_batchnorm",
)
