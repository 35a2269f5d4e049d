"""Fold a constant that is added to or subtracted from a convolution into its bias.

    before   x ─> Conv(W, b) ─> Add(·, c) ─> y            after   x ─> Conv(W, b + c) ─> y

A Transpose may be between the two. ``c - conv`` also negates the weight.

Needs    (1) a constant with one element for each channel or one in all: (C,1,1), (1,C,1,1) or ();
         behind a Transpose, along the axis that channels have there. Any number of groups and
         spatial dims.
Keeps    (1) constants that vary along another axis or enlarge the result; (2) a computed bias;
         (3) a convolution with other readers. Constants are copied, never changed.
"""

from __future__ import annotations

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.output_channels import (
    ANY_WEIGHT,
    CONSTANT_WEIGHT,
    Convolution,
    convolution,
    perhaps_transposed,
)

_conv = perhaps_transposed(convolution(ANY_WEIGHT))  # keeps 3
_constant_conv = perhaps_transposed(convolution(CONSTANT_WEIGHT))
_term = const(name="term", limit=None)  # keeps 2


@rule(one_of(op("Add", _conv, _term, commutative=True), op("Sub", _conv, _term)), same_shape=True)
def conv_plus(m: Match, b: Builder) -> Replacement:
    """Fold ``conv + c`` or ``conv - c`` into the bias."""
    operands = _operands(m)
    if isinstance(operands, Miss):
        return operands
    conv, term = operands
    sign = -1.0 if m.root.op_type == "Sub" else 1.0
    return conv.rebuild(b, None, conv.exact_bias() + sign * term)


@rule(op("Sub", _term, _constant_conv), same_shape=True)
def minus_conv(m: Match, b: Builder) -> Replacement:
    """Fold ``c - conv`` into weight and bias."""
    operands = _operands(m)
    if isinstance(operands, Miss):
        return operands
    conv, term = operands
    return conv.rebuild(b, -np.ones(conv.channels), term - conv.exact_bias())


def _operands(m: Match) -> tuple[Convolution, np.ndarray] | Miss:
    """Return the convolution, and the constant as one number for each output channel, or a Miss."""
    conv, array = Convolution.of(m), m.array("term", limit=None)
    if isinstance(conv, Miss):
        return conv
    if array is None:
        return Miss("the term is not constant")
    term = conv.per_channel(array)
    if term is None:  # needs 1, keeps 1
        return Miss("the term varies along an axis other than the output channels")
    return conv, term


fuse_conv_bias = rule_pass(
    "fuse_conv_bias",
    __doc__,
    [conv_plus, minus_conv],
    exactness=rounding(4),
    source="Core ML MIL: common::fuse_conv_bias",
)
