"""Constant parameters of Conv and ConvTranspose, and how to scale them channel by channel.

Conv keeps its weight as (M, C/groups, ...), ConvTranspose as (C, M/groups, ...): there, output
channel ``g * (M/groups) + j`` is row ``j`` of the block of group ``g``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.match import Op, const, op, optional, var
from smelt.ir.rule import Match, Miss

CONVOLUTION: Op = op(
    ["Conv", "ConvTranspose"],
    var("x"),
    const(name="weight", limit=None),
    optional(const(name="bias", limit=None)),
    name="convolution",
)
"""A convolution with constant parameters, whose result only the root reads."""


@dataclass(frozen=True)
class Convolution:
    """A matched CONVOLUTION: its parameters, number of output channels and spatial dims."""

    node: ir.Node
    weight: np.ndarray
    bias: np.ndarray | None
    groups: int
    channels: int

    @classmethod
    def of(cls, m: Match) -> Convolution | Miss:
        """Read the parameters, of any size, of the convolution that ``m`` bound."""
        node = m.node("convolution")
        weight, bias = m.array("weight", limit=None), m.array("bias", limit=None)
        groups = opset.attribute(node, "group", m.opset) or 1
        if weight is None or weight.ndim < 3 or weight.dtype.kind not in "fV":
            return Miss("the weight is no tensor of floats with spatial dims")
        transposed = node.op_type == "ConvTranspose"
        channels = weight.shape[1] * groups if transposed else weight.shape[0]
        if weight.shape[0] % groups or channels % groups or not weight.size:
            return Miss("the groups do not divide the channels")
        if bias is not None and bias.shape != (channels,):
            return Miss(f"the bias is of shape {bias.shape}, not ({channels},)")
        return cls(node, weight, bias, groups, channels)

    @property
    def rank(self) -> int:
        """The rank of input, weight and result."""
        return self.weight.ndim

    def exact_bias(self) -> np.ndarray:
        """The bias in float64, zeros if there is none."""
        if self.bias is None:
            return np.zeros(self.channels)
        return self.bias.astype(np.float64)

    def scaled_weight(self, factor: np.ndarray) -> np.ndarray:
        """The weight in float64 with output channel ``m`` times ``factor[m]``."""
        weight = self.weight.astype(np.float64)
        ones = (1,) * (self.rank - 2)
        if self.node.op_type == "Conv":
            return np.asarray(weight * factor.reshape(-1, 1, *ones))
        blocks = weight.reshape(self.groups, -1, *weight.shape[1:])
        scaled = blocks * factor.reshape(self.groups, 1, -1, *ones)
        return np.asarray(scaled.reshape(weight.shape))

    def per_channel(self, array: np.ndarray) -> np.ndarray | None:
        """A constant that meets the result, as one float64 number per output channel.

        None if it varies along another axis, or would widen the result.
        """
        shape = (1,) * (self.rank - array.ndim) + array.shape
        if array.ndim > self.rank or shape[1] not in (1, self.channels):
            return None
        if array.size != shape[1]:
            return None
        flat = array.reshape(-1).astype(np.float64)
        return np.broadcast_to(flat, (self.channels,))

    def rebuild(
        self, b: Builder, weight: np.ndarray | None, bias: np.ndarray | None
    ) -> ir.Value | Miss:
        """The convolution with other parameters, given in float64; None keeps one.

        They are rounded to the dtype that the old ones have. New constants leave the old ones to
        others that read them.
        """
        values = [*self.node.inputs, None][:3]
        for index, array, name in ((1, weight, "weight"), (2, bias, "bias")):
            if array is None:
                continue
            rounded = round_to(array, self.weight.dtype)
            if rounded is None:
                return Miss(f"the new {name} does not fit {self.weight.dtype}")
            old = self.node.inputs[index] if index < len(self.node.inputs) else None
            values[index] = b.constant(rounded, name=old.name if old is not None else None)
        return b.like(self.node, *values)


def round_to(exact: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """``exact`` in ``dtype``; None if some element overflows, is NaN or is flushed to nothing."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        back = rounded.astype(np.float64)
        # A subnormal weight has few bits left: a relative error that no tolerance declares.
        kept = np.abs(back - exact) <= 2.0**-7 * np.abs(exact)
    return rounded if bool(np.all(np.isfinite(back) & kept)) else None
