"""Distances between floating-point numbers, counted in units in the last place (ulp)."""

from __future__ import annotations

import numpy as np

_BITS: dict[int, type[np.signedinteger]] = {2: np.int16, 4: np.int32, 8: np.int64}


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many representable numbers lie between ``a`` and ``b``, element by element.

    Both have one dtype of 2, 4 or 8 bytes (float16, bfloat16, float32, float64) and shapes that
    broadcast. Zeros of either sign are 0 apart; NaN against NaN is 0, against a number the
    largest int64. The result is int64.
    """
    if a.dtype != b.dtype:
        raise TypeError(f"ulp_distance needs one dtype, not {a.dtype} and {b.dtype}")
    a, b = np.broadcast_arrays(a, b)
    far = np.iinfo(np.int64).max
    i, j = _ordered(a), _ordered(b)
    # Opposite signs in float64 can be more than 2**63 apart; such a distance saturates.
    with np.errstate(over="ignore"):
        gap = np.abs(i - j)
    gap = np.where((i < 0) != (j < 0), np.where(np.abs(i) > far - np.abs(j), far, gap), gap)
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    distance: np.ndarray = np.where(a_nan | b_nan, np.where(a_nan & b_nan, 0, far), gap)
    return distance


def _ordered(array: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats: sign-magnitude bits made two's complement."""
    bits = np.asarray(array, order="C").view(_BITS[array.dtype.itemsize]).astype(np.int64)
    lowest = np.int64(np.iinfo(_BITS[array.dtype.itemsize]).min)
    ordered: np.ndarray = np.where(bits < 0, lowest - bits, bits)
    return ordered


def is_close(item: np.generic, number: float, ulp: int) -> bool:
    """True if ``item`` is within ``ulp`` steps of ``number`` rounded to the dtype of ``item``.

    Integers and bools must be equal. The tolerance is relative to the dtype, so ``1e-12`` is
    never close to ``0`` and float16's ``1.4141`` is its own square root of two.
    """
    kind = item.dtype.kind
    if kind in "biu":
        return bool(item == number)
    target = np.asarray(number).astype(item.dtype)
    distance = ulp_distance(np.asarray(item).reshape(()), target.reshape(()))
    return int(distance) <= ulp
