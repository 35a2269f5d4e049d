"""Fuse a scale and an offset for each channel into one ``BatchNormalization``.

    before   x ─> Mul(·, s) ─> Add(·, c) ─> y       after   x ─> BatchNormalization(s, c, 0, 1) ─> y

With mean 0, variance 1 and epsilon 0 the operator computes the same. ``Mul - c`` negates c. It
helps only targets with a kernel for this operator, or before ``fuse-conv-batchnorm``, so that the
pass runs on request and for the target ``coreml`` only. ``scalars=false`` leaves factors and terms
of one element.

Needs    (1) floats of rank 3 or more with a known size C above 1 along axis 1; (2) finite
         constants with one element for each channel or one in all: (C,1,1), (1,C,1,1), ().
Keeps    (1) an x of one channel, which (C,1,1) would broadcast to C; (2) an x with an unknown
         number of channels; (3) constants that vary along another axis or raise the rank; (4) a
         product with other readers; (5) with ``scalars=false``, a factor or term of one element.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass


@dataclass(frozen=True)
class Constants:
    """``scalars``: fuse a factor or term that is the same for all channels, too."""

    scalars: bool = True


_product = op("Mul", var("x"), const(name="scale", limit=None), commutative=True)
_offset = const(name="offset", limit=None)


# keeps 4
@rule(one_of(op("Add", _product, _offset, commutative=True), op("Sub", _product, _offset)))
def scale_and_offset(m: Match, b: Builder) -> Replacement:
    """Replace ``x * s + c`` or ``x * s - c`` by BatchNormalization with mean 0 and variance 1."""
    x = m["x"]
    if x.shape is None or len(x.shape) < 3:  # needs 1
        return Miss("x is not known to have rank 3 or more")
    if m.array("x", limit=None) is not None:
        return Miss("x is constant")
    channels = x.shape[1]
    if not isinstance(channels, int) or channels < 2:  # keeps 1, 2
        return Miss("the number of channels of x is unknown or below 2")
    scale, offset = (
        _per_channel(m.array(name, limit=None), len(x.shape), channels)
        for name in ("scale", "offset")
    )
    if scale is None:  # needs 2, keeps 3
        return Miss("the factor is not a finite constant that varies by channel alone")
    if offset is None:  # needs 2, keeps 3
        return Miss("the term is not a finite constant that varies by channel alone")
    if m.root.op_type == "Sub":
        offset = -offset
    mean, variance = np.zeros_like(scale), np.ones_like(scale)
    parameters = [b.constant(array) for array in (scale, offset, mean, variance)]
    return b.op("BatchNormalization", x, *parameters, epsilon=0.0)


def _per_channel(array: np.ndarray | None, rank: int, channels: int) -> np.ndarray | None:
    """Return ``array``, which broadcasts to x, as a vector over axis 1.

    None if it varies along another axis, or is no array of finite floats.
    """
    if array is None or array.ndim > rank or not is_float(array.dtype):
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    if shape[1] not in (1, channels) or array.size != shape[1]:
        return None
    if not np.all(np.isfinite(array.astype(np.float64))):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,)).copy()


@rule(scale_and_offset.pattern)
def scale_and_offset_of_channels(m: Match, b: Builder) -> Replacement:
    """Do the same, but with ``scalars=false`` not for a factor or term of one element."""
    if not m.options.scalars:  # keeps 5
        arrays = (m.array(name, limit=None) for name in ("scale", "offset"))
        if any(each is not None and each.size == 1 for each in arrays):
            return Miss("the factor or the term has one element")
    return scale_and_offset.build(m, b)


fuse_elementwise_to_batchnorm = rule_pass(
    "fuse_elementwise_to_batchnorm",
    __doc__,
    [scale_and_offset_of_channels],
    exactness=rounding(2),
    options_type=Constants,
    default=False,
    source="Core ML MIL: common::fuse_elementwise_to_batchnorm",
)
