"""Distances between floating-point numbers, counted in units in the last place."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def is_float(dtype: np.dtype) -> bool:
    """True for every floating-point type, bfloat16 and the 8-bit and 4-bit ones included."""
    if dtype.kind == "f":
        return True
    return dtype.kind == "V" and dtype.name.startswith(("bfloat", "float"))


def is_half(dtype: np.dtype) -> bool:
    """True for float16 and bfloat16."""
    return dtype.name in ("float16", "bfloat16")


def float_info(dtype: np.dtype) -> ml_dtypes.finfo:
    """Return the limits of a floating-point type of NumPy or ml_dtypes."""
    return ml_dtypes.finfo(dtype)


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return, per element, the number of steps between representable numbers from ``a`` to ``b``.

    The result is float64. Both have the same floating-point dtype. Zeros of both signs are one
    number; infinity is one step after the largest. NaN to NaN is 0 and NaN to a number is infinite.
    """
    magnitude_a, negative_a = _split(a)
    magnitude_b, negative_b = _split(b)
    # uint64 has no room for a sum across zero; its exact value does not matter there.
    across = magnitude_a.astype(np.float64) + magnitude_b.astype(np.float64)
    larger = np.maximum(magnitude_a, magnitude_b)
    within = (larger - np.minimum(magnitude_a, magnitude_b)).astype(np.float64)
    distance = np.where(negative_a == negative_b, within, across)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    return np.where(nan_a | nan_b, np.where(nan_a & nan_b, 0.0, np.inf), distance)


def _split(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the magnitude bits as integers, and the signs; every IEEE-like format has both."""
    bits = np.ascontiguousarray(array).reshape(array.shape).view(_UNSIGNED[array.dtype.itemsize])
    sign = bits.dtype.type(1 << (float_info(array.dtype).bits - 1))
    magnitude = bits & bits.dtype.type(int(sign) - 1)
    return magnitude, (bits & sign) != 0


def spacing(magnitude: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return one unit in the last place of ``dtype`` at ``magnitude``, in float64; NaN for
    infinities."""
    info = float_info(dtype)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(magnitude).astype(np.float64))
        unit = np.where(magnitude == 0, 0.0, np.ldexp(1.0, exponent - 1 - info.nmant))
        unit = np.maximum(unit, float(info.smallest_subnormal))
        return np.where(np.isfinite(magnitude), unit, np.nan)


def is_close(item: np.generic, number: float, ulp: int) -> bool:
    """True if ``item`` is within ``ulp`` steps of ``number`` rounded to the dtype of ``item``.

    Integers and bools must be equal. The tolerance is relative to the dtype, so ``1e-12`` is
    never close to ``0`` and float16's ``1.4141`` is its own square root of two.
    """
    kind = item.dtype.kind
    if kind in "biu":
        return bool(item == number)
    target = np.asarray(number).astype(item.dtype)
    if not ulp and not np.isnan(target):
        return bool(item == target)
    distance = ulp_distance(np.asarray(item).reshape(()), target.reshape(()))
    return bool(distance <= ulp)
