"""Weight and bias of Conv and ConvTranspose, changed for each output channel.

Conv stores its weight as (M, C/groups, ...), ConvTranspose as (C, M/groups, ...): there, output
channel ``g * (M/groups) + j`` is column ``j`` of the block of group ``g``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs
from smelt.ir.pattern import OneOf, Op, Pattern, const, one_of, op, optional, var
from smelt.ir.rule import Match, Miss
from smelt.passes.convolution.rounded_product import round_product, round_to


def convolution(weight: Pattern) -> Op:
    """Match a convolution with a constant bias or none, whose result only the root reads."""
    bias = optional(const(name="bias", limit=None))
    return op(["Conv", "ConvTranspose"], var("x"), weight, bias, name="convolution")


def perhaps_transposed(pattern: Op) -> OneOf:
    """Match ``pattern`` or a Transpose of it, bound to ``moved``."""
    return one_of(pattern, op("Transpose", pattern, name="moved"))


CONSTANT_WEIGHT = const(name="weight", limit=None)
ANY_WEIGHT = var("weight")


@dataclass(frozen=True)
class Convolution:
    """A Conv or ConvTranspose that a rule matched, with what its rebuilding needs.

    ``rank`` is that of input, weight and result, ``channels`` the number of output channels,
    ``dtype`` the type of the weight.
    """

    match: Match
    node: ir.Node
    weight: ir.Value
    bias: np.ndarray | None
    dtype: np.dtype
    rank: int
    groups: int
    channels: int

    @classmethod
    def of(cls, m: Match) -> Convolution | Miss:
        """Return the convolution that ``m`` bound, with its bias as an array, or a Miss."""
        node, weight = m.node("convolution"), m["weight"]
        if weight.dtype is None or not weight.dtype.is_floating_point():
            return Miss("the weight is not known to be floating-point")
        if weight.shape is None:
            return Miss("the rank of the weight is not known")
        groups = int(opset.attribute(node, "group", m.opset))
        transposed = node.op_type == "ConvTranspose"
        channels = weight.shape[1 if transposed else 0] if len(weight.shape) >= 3 else None
        if not isinstance(channels, int):
            return Miss("the number of output channels is not known")
        channels *= groups if transposed else 1
        bias = m.array("bias", limit=None)
        if bias is not None and bias.shape != (channels,):
            return Miss(f"the bias is of shape {bias.shape}, not ({channels},)")
        rank, dtype = len(weight.shape), weight.dtype.numpy()
        return cls(m, node, weight, bias, dtype, rank, groups, channels)

    def exact_bias(self) -> np.ndarray:
        """Return the bias in float64, zeros if there is none."""
        if self.bias is None:
            return np.zeros(self.channels)
        return self.bias.astype(np.float64)

    def _scaled_weight(self, factor: np.ndarray) -> np.ndarray | Miss:
        """Return the weight with output channel ``m`` times ``factor[m]``, or a Miss."""
        array = self.match.array(self.weight, limit=None)
        if array is None:
            return Miss("the weight is not constant")
        ones = (1,) * (self.rank - 2)
        if self.node.op_type == "Conv":
            scaled = round_product(array, factor.reshape(-1, 1, *ones), self.dtype)
        elif array.shape[0] % self.groups:
            return Miss("the group count does not divide the input channels")
        elif not array.size:
            return Miss("the weight is empty")
        else:
            blocks = array.reshape(self.groups, -1, *array.shape[1:])
            scaled = round_product(blocks, factor.reshape(self.groups, 1, -1, *ones), self.dtype)
        if scaled is None:
            return Miss(f"the new weight does not fit {self.dtype}")
        return scaled.reshape(array.shape)

    def per_channel(self, array: np.ndarray) -> np.ndarray | None:
        """Return ``array``, which broadcasts to the result, as one float64 number for each output
        channel.

        None if it varies along another axis, or would enlarge the result.
        """
        if array.ndim > self.rank or array.dtype.kind not in "fV":
            return None
        axis = 1
        if self.match.get("moved") is not None:
            perm = opset.attribute(self.match.node("moved"), "perm", self.match.opset)
            axis = list(perm or range(self.rank)[::-1]).index(1)
        shape = (1,) * (self.rank - array.ndim) + array.shape
        if shape[axis] not in (1, self.channels) or array.size != shape[axis]:
            return None
        return np.broadcast_to(array.reshape(-1).astype(np.float64), (self.channels,))

    def rebuild(
        self, b: Builder, factor: np.ndarray | None, bias: np.ndarray | None
    ) -> ir.Value | Miss:
        """Return the convolution with output channel ``m`` of its weight times ``factor[m]``, and
        ``bias``; or a Miss.

        Both are float64; None keeps the old value. Results are rounded to the old dtype. The old
        constants stay for their other readers. A Transpose behind the convolution stays behind it.
        """
        values = first_inputs(self.node, 3)
        weight = None if factor is None else self._scaled_weight(factor)
        if isinstance(weight, Miss):
            return weight
        rounded = None if bias is None else round_to(bias, self.dtype)
        if bias is not None and rounded is None:
            return Miss(f"the new bias does not fit {self.dtype}")
        for index, array in ((1, weight), (2, rounded)):
            replaced = values[index]
            if array is not None:
                values[index] = b.constant(
                    array, name=replaced.name if replaced is not None else None
                )
        new = b.like(self.node, *values)
        return new if self.match.get("moved") is None else b.like(self.match.node("moved"), new)
