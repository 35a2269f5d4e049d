"""Roots of unity, accurate to the last bit."""

from __future__ import annotations

import numpy as np


def roots(products: np.ndarray, length: int, sign: int) -> np.ndarray:
    """Return ``exp(sign * 2i * pi * p / length)`` for integers ``p`` as [2, ...]: cosines, then
    sines.

    Angles are reduced to the first eighth of the circle, where cosine and sine are most accurate.
    """
    eighths = 8 * (np.asarray(products, np.int64) % length)
    octant, remainder = eighths // length, eighths % length
    mirrored = octant % 2 == 1
    angle = np.where(mirrored, length - remainder, remainder) * (np.pi / 4 / length)
    cos, sin = np.cos(angle), np.sin(angle)
    quarter = (octant + 1) // 2 % 4
    sin = np.where(mirrored, -sin, sin)
    real = np.choose(quarter, [cos, -sin, -cos, sin])
    imaginary = np.choose(quarter, [sin, cos, -sin, -cos])
    return np.stack([real, sign * imaginary])
