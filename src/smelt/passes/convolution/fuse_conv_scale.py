"""Fold a constant that multiplies or divides a convolution into its weight and bias.

    before   x ─> Conv(W, b) ─> Mul(·, s) ─> y            after   x ─> Conv(W * s, b * s) ─> y

Needs    (1) a constant weight, and a constant of one element a channel, or one in all. It is
         combined in float64 and rounded once. A Transpose may stand between the two.
Keeps    (1) ``s / conv``; (2) a division by 0; (3) constants that vary along another axis or widen
         the result; (4) products that overflow. A weight that others read stays theirs.
"""

from __future__ import annotations

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.output_channels import (
    CONSTANT_WEIGHT,
    Convolution,
    convolution,
    perhaps_transposed,
)

_conv = perhaps_transposed(convolution(CONSTANT_WEIGHT))  # needs 1
_scale = const(name="scale", limit=None)


# keeps 1
@rule(one_of(op("Mul", _conv, _scale, commutative=True), op("Div", _conv, _scale)), same_shape=True)
def conv_times(m: Match, b: Builder) -> Replacement:
    conv, array = Convolution.of(m), m.array("scale", limit=None)
    if isinstance(conv, Miss):
        return conv
    scale = conv.per_channel(array) if array is not None else None
    if scale is None:  # keeps 3
        return Miss("the constant is not one number for each channel")
    with np.errstate(all="ignore"):
        factor = 1 / scale if m.root.op_type == "Div" else scale
        bias = conv.exact_bias() * factor
    return conv.rebuild(b, factor, None if conv.bias is None else bias)  # keeps 2, 4


fuse_conv_scale = rule_pass(
    "fuse_conv_scale",
    __doc__,
    [conv_times],
    exactness=rounding(8, "weights are scaled before the sum instead of after it"),
    source="Core ML MIL: common::fuse_conv_scale",
)
