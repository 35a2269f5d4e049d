"""Decide whether a node's numbers fit a half type: not beyond its range, and not too near to 0."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.floats import float_info
from smelt.passes.precision.half_places import Places
from smelt.precision.ranges import Range, Ranges

HEADROOM = 4.0
"""Values may grow by this factor on inputs that were not measured."""

# Reasons to keep a node in float32, as the report of a conversion lists them.
OVERFLOW = "beyond the range"
CONSTANT = "a constant beyond the range"
EPSILON = "a constant near 0"
TINY = "numbers near 0"
COUNT = "whole numbers beyond its bits"


class Limits:
    """The limits of the half type ``half``, and reasons for nodes that exceed them.

    Each method returns the reason why a node must stay in float32, or None.
    """

    def __init__(self, half: ir.DataType, constants: Constants) -> None:
        """Store the largest number, the smallest normal number, and the relative rounding error."""
        info = float_info(half.numpy())
        self.half, self.constants = half, constants
        self.largest = float(info.max)
        self.smallest = float(info.smallest_normal)
        self.rounding = float(info.eps) / 2

    def constant_reason(self, node: ir.Node, places: Places) -> str | None:
        """Return a reason if a finite constant that ``node`` reads would be infinite in half."""
        for index in places[0]:
            value = node.inputs[index]
            tensor = None if value is None else value.const_value
            array = self.constants.get(value, limit=None)
            if array is None and tensor is not None:  # the default of an input
                array = tensor.numpy()
            if array is None or not array.size:
                continue
            least, most = np.nanmin(array), np.nanmax(array)
            if np.isinf(least) or np.isinf(most):
                finite = array[np.isfinite(array)]
                least, most = finite.min(initial=0), finite.max(initial=0)
            if max(-float(least), float(most)) > self.largest:
                return CONSTANT
        return None

    def scalar_reason(self, node: ir.Node, places: Places) -> str | None:
        """Return a reason if ``node`` reads a constant of one element that is subnormal in half.

        Subnormal numbers have fewer bits: an epsilon of 1e-12 becomes 0 in float16.
        """
        for index in places[0]:
            array = self.constants.get(node.inputs[index])
            if array is None or array.size != 1:
                continue
            number = abs(float(array.reshape(-1)[0]))
            if 0 < number < self.smallest:
                return EPSILON
        return None

    def range_reason(self, node: ir.Node, places: Places, ranges: Ranges) -> str | None:
        """Return a reason if the measured range of an operand or result of ``node`` does not fit.

        The result of a Cast is often a count or an index, so it must also stay within the whole
        numbers that half holds exactly: up to ``1 / rounding``, 2048 in float16.
        """
        operands = [node.inputs[index] for index in places[0]]
        for value in (*operands, *(node.outputs[index] for index in places[1])):
            measured = None if value is None else ranges.of(value)
            reason = None if measured is None else self._misfit(measured)
            if reason is not None:
                return reason
        if node.op_type == "Cast":
            measured = ranges.of(node.outputs[0])
            if measured is not None and measured.magnitude > 1 / self.rounding:
                return COUNT
        return None

    def _misfit(self, measured: Range) -> str | None:
        """Return why numbers of this range do not fit; None if they do.

        They fit with a headroom of 4 below the largest number, and if not all are subnormal.
        """
        if measured.magnitude * HEADROOM > self.largest:
            return OVERFLOW
        if 0 < measured.magnitude < 2 * self.smallest:
            return TINY
        return None
