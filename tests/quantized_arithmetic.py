"""What quantized operators come to in exact arithmetic, for tests.

ONNX Runtime multiplies uint8 by int8 in 16 bits that saturate, on CPUs without VNNI, so it is no
judge of weights of eight bits.
"""

from __future__ import annotations

import math

import numpy as np


def requantized(
    sums: np.ndarray, factor: np.ndarray, zero: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """``sums * factor`` in float, rounded to even, plus ``zero``, held in ``dtype``."""
    scaled = sums.astype(np.int32).astype(np.float32) * np.asarray(factor, np.float32)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(scaled) + int(zero), limits.min, limits.max).astype(dtype)


def in_fixed_point(
    sums: np.ndarray, factor: np.ndarray, zero: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """``sums * factor`` as gemmlowp has it: a product of 62 bits, rounded twice, plus ``zero``."""
    limits = np.iinfo(dtype)
    pairs = np.broadcast(sums.astype(np.int64), np.asarray(factor, np.float64))
    scaled = [_by_multiplier(int(value), float(each)) + int(zero) for value, each in pairs]
    shape = pairs.shape
    return np.clip(np.array(scaled).reshape(shape), limits.min, limits.max).astype(dtype)


def _by_multiplier(value: int, factor: float) -> int:
    part, shift = math.frexp(factor)
    product = value * 2 ** max(shift, 0) * round(part * 2**31)
    high = (abs(product) + 2**30) // 2**31
    by = 2 ** max(-shift, 0)
    rounded = (2 * high + by) // (2 * by)  # halves away from zero
    return rounded if product >= 0 else -rounded


def convolved(
    x: np.ndarray, w: np.ndarray, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1
) -> np.ndarray:
    """The sums of a convolution of integers in double, which holds each."""
    top, left, bottom, right = pads
    image = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    kernel = w.shape[2:]
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True))
    seen = np.lib.stride_tricks.sliding_window_view(image, reach, (2, 3))
    seen = seen[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    parts = zip(np.split(seen, group, 1), np.split(w.astype(np.float64), group), strict=True)
    return np.concatenate([np.einsum("nchwij,mcij->nmhw", a, b) for a, b in parts], 1)


def factors(x: float, w: np.ndarray, y: float) -> np.ndarray:
    """The factors of the sums, in ONNX Runtime's order."""
    return np.asarray(np.float32(x) * np.asarray(w, np.float32) / np.float32(y), np.float32)
