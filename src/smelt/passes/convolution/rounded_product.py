"""Multiply weights by factors in float64 and round once, in pieces that fit a core's cache.

No float64 copy of a whole weight is made. The range check of a piece runs while it is in the cache.
"""

from __future__ import annotations

import math

import numpy as np

from smelt.ir.floats import float_info

BLOCK = 1 << 16
"""Number of elements that are multiplied and checked together."""


def round_product(array: np.ndarray, factor: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return ``array * factor``, computed in float64 and rounded once to ``dtype``.

    None if an element overflows, is NaN or, as a subnormal, loses too many bits. ``factor``
    broadcasts to ``array``. The result has the memory layout of ``array``.
    """
    if array.dtype.kind != "f" or dtype.kind != "f":
        with np.errstate(all="ignore"):
            return round_to(array.astype(np.float64) * factor, dtype)
    rounded = np.empty_like(array, dtype=dtype)
    with np.errstate(all="ignore"):
        rows = _as_matrices(array, factor)
        if rows is None:
            np.multiply(array, factor, out=rounded, dtype=np.float64, casting="same_kind")
            magnitudes = np.abs(rounded)
            low, high = magnitudes.min(initial=np.inf), magnitudes.max(initial=0)
        else:
            order, (source, factors) = rows
            low, high = _multiply(source, factors, rounded.transpose(order).reshape(source.shape))
    if not high <= float_info(dtype).max:
        return None
    tiny = float(float_info(dtype).smallest_normal)
    if low >= tiny:
        return rounded
    small = rounded < tiny  # np.abs would copy the whole weight
    small &= rounded > -tiny
    with np.errstate(all="ignore"):
        exact = array[small].astype(np.float64) * np.broadcast_to(factor, array.shape)[small]
    return rounded if _keep_precision(exact, rounded[small]) else None


def _as_matrices(
    array: np.ndarray, factor: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None:
    """Return the memory order of the axes, and ``array`` and ``factor`` as matrices in that order.

    The matrices are contiguous, so that pieces of rows fill a cache: each row has one factor, or
    all rows share one row of factors. None if ``factor`` varies along several axes, or if ``array``
    has gaps in memory.
    """
    order = np.argsort([-abs(stride) for stride in array.strides], kind="stable")
    factors = factor.reshape((1,) * (array.ndim - factor.ndim) + factor.shape).transpose(order)
    source = array.transpose(order)
    varying = [axis for axis, size in enumerate(factors.shape) if size > 1]
    if not source.flags.c_contiguous or not source.size or len(varying) > 1:
        return None
    axis = varying[0] if varying else 0
    if varying and factors.shape[axis] != source.shape[axis]:
        return None
    inner = math.prod(source.shape[axis + 1 :])
    if inner == 1 and varying:
        width = source.shape[axis]
        return order, (source.reshape(-1, width), factors.reshape(1, width))
    row_factors = np.broadcast_to(
        factors.reshape(1, -1), (math.prod(source.shape[:axis]), source.shape[axis])
    )
    return order, (source.reshape(-1, inner), row_factors.reshape(-1, 1))


def _multiply(source: np.ndarray, factors: np.ndarray, out: np.ndarray) -> tuple[float, float]:
    """Fill ``out`` with ``source * factors`` and return the smallest and the largest magnitude.

    All three are matrices as ``_as_matrices`` makes them. The magnitudes tell whether a product
    overflows or is subnormal; both are NaN if a product is NaN.
    """
    count, width = source.shape
    step = max(1, BLOCK // width)
    rounded_factors = factors.astype(out.dtype)
    # If both factors have the result's type, its product is rounded once, too.
    exact = source.dtype == out.dtype and bool((rounded_factors == factors).all())
    factors = rounded_factors if exact else factors
    product_buffer, magnitude_buffer = np.empty((step, width)), np.empty((step, width), out.dtype)
    low, high = np.inf, 0.0
    for start in range(0, count, step):
        piece = source[start : start + step]
        product = product_buffer[: len(piece)]
        magnitude = magnitude_buffer[: len(piece)]
        result = out[start : start + step]
        piece_factors = factors if len(factors) == 1 else factors[start : start + step]
        if exact:
            np.multiply(piece, piece_factors, out=result)
        else:
            np.copyto(product, piece)
            np.multiply(product, piece_factors, out=product)
            np.copyto(result, product, casting="same_kind")
        np.abs(result, out=magnitude)
        low, high = np.minimum(low, magnitude.min()), np.maximum(high, magnitude.max())
    return float(low), float(high)


def _keep_precision(exact: np.ndarray, rounded: np.ndarray) -> bool:
    """True if the relative error of each ``rounded`` number is at most 2**-7.

    Callers ask for subnormal results only: these have few bits, others are rounded well.
    """
    with np.errstate(all="ignore"):
        return bool((np.abs(rounded.astype(np.float64) - exact) <= 2.0**-7 * np.abs(exact)).all())


def round_to(exact: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return ``exact`` in ``dtype``; None if an element overflows, is NaN or loses too many
    bits."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        is_subnormal = np.abs(rounded) < float_info(dtype).smallest_normal
    fits = bool(np.isfinite(rounded).all()) and _keep_precision(
        exact[is_subnormal], rounded[is_subnormal]
    )
    return rounded if fits else None
