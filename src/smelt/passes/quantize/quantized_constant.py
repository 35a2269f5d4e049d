"""Compute the integers that a QuantizeLinear makes of a constant."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.passes.quantize.quantization import Quantization
from smelt.passes.quantize.round_trip import FLOATS, integer_range, is_normal


def quantized(array: np.ndarray, quantize: ir.Node, constants: Constants) -> np.ndarray | str:
    """Return the integers that ``quantize`` computes from ``array``, or why they are uncertain.

    Runtimes divide in the type of the scale or in float32. The result is uncertain if these give
    different integers, and for NaN, which ONNX leaves undefined.
    """
    quantization = Quantization.of(quantize)
    if quantization is None:
        return "the element types are unknown, or the result is not an integer"
    scales, zero_points = quantization.scales(constants), quantization.zero_points(constants)
    if scales is None or zero_points is None:
        return "the scale is not constant" if scales is None else "the zero point is not constant"
    if not quantization.real <= FLOATS:
        return "the constant or its scale is not float32, float16 or bfloat16"
    if not all(is_normal(scales, dtype) for dtype in quantization.real):
        return "a scale is not a positive normal number"
    if bool(np.isnan(array).any()):
        return "the constant holds NaN"
    scale, zero_point = (
        _per_element(item, quantization, array.shape) for item in (scales, zero_points)
    )
    if scale is None or zero_point is None:
        return "the scales do not fit the constant"
    low, high = integer_range(quantization.integer)
    result: np.ndarray | None = None
    for dtype in sorted(quantization.real | {ir.DataType.FLOAT}):
        with np.errstate(all="ignore"):
            quotient = array.astype(dtype.numpy()) / scale.astype(dtype.numpy())
            steps = np.rint(quotient.astype(np.float64)) + zero_point
        integers = np.clip(steps, low, high).astype(quantization.integer.numpy())
        if result is not None and not np.array_equal(result, integers):
            return "runtimes that divide in another type round to other integers"
        result = integers
    assert result is not None
    return result


def _per_element(array: np.ndarray, q: Quantization, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return scales or zero points in a shape that broadcasts to ``shape``.

    None if they do not fit.
    """
    if q.axis is None:
        return array if array.ndim == 0 else None
    if not 0 <= q.axis < len(shape):
        return None
    size = shape[q.axis]
    if q.block_size:
        if array.ndim != len(shape):
            return None
        repeated = np.repeat(array, q.block_size, axis=q.axis)
        repeated = repeated[(slice(None),) * q.axis + (slice(size),)]
        return repeated if repeated.shape == shape else None
    if array.shape != (size,):
        return None
    return array.reshape(-1, *(1,) * (len(shape) - q.axis - 1))
