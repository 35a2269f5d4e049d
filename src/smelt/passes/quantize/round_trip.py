"""Decide whether integers stay equal when they are dequantized and quantized again."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.floats import float_info
from smelt.passes.quantize.quantization import Quantization, difference

FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
"""The types in which ONNX dequantizes, apart from scales that are powers of two."""


def round_trip_flaw(dq: Quantization, q: Quantization, constants: Constants) -> str | None:
    """Return why quantizing the result of ``dq`` with ``q`` might change integers, else None.

    Let ``n = integer - zero_point`` and ``u`` the unit roundoff. Three numbers are rounded, each by
    a factor of at most ``1 + u`` in the normal range: the product, the quotient and, in runtimes
    that multiply by it, the reciprocal of the scale. The result rounds to ``n`` if
    ``|n| * ((1 + u)**3 - 1) < 1/2``.
    """
    differs = difference(dq, q, constants)
    if differs is not None:
        return differs
    dtype = dq.scale.dtype
    if dtype not in FLOATS or dq.real | q.real != {dtype}:
        return "the product and the quotient are not in one floating-point type"
    scales = dq.scales(constants)
    if scales is None:
        return "the scale is not constant"
    if not is_normal(scales, dtype):
        return "a scale or its reciprocal is not a positive normal number"
    info = float_info(dtype.numpy())
    roundoff = float(info.eps) / 2
    steps = largest_steps(dq, constants)
    if np.any(steps * ((1 + roundoff) ** 3 - 1) >= 0.5):
        return f"{dtype} cannot distinguish all values of {dq.integer}"
    if np.any(steps * scales * (1 + roundoff) > float(info.max)):
        return "dequantized values may overflow"
    return None


def is_normal(scales: np.ndarray, dtype: ir.DataType) -> bool:
    """True if all ``scales`` and their reciprocals are positive normal numbers of ``dtype``."""
    info = float_info(dtype.numpy())
    smallest, largest = float(info.smallest_normal), float(info.max)
    inside = (scales >= smallest) & (scales <= min(largest, 1 / smallest))
    return bool(np.all(inside))


def largest_steps(q: Quantization, constants: Constants) -> np.ndarray:
    """Return the largest ``|integer - zero_point|`` in float64, for each zero point or for all."""
    low, high = integer_range(q.integer)
    zero_points = q.zero_points(constants)
    if zero_points is None:
        return np.asarray(float(high - low))
    steps: np.ndarray = np.maximum(high - zero_points, zero_points - low)
    return steps.astype(np.float64)


def integer_range(dtype: ir.DataType) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type."""
    if dtype.is_signed():
        return -(1 << (dtype.bitwidth - 1)), (1 << (dtype.bitwidth - 1)) - 1
    return 0, (1 << dtype.bitwidth) - 1
