"""Roots of unity, right to the last place."""

from __future__ import annotations

import numpy as np


def roots(products: np.ndarray, length: int, sign: int) -> np.ndarray:
    """``exp(sign * 2i * pi * p / length)`` of integers ``p``, [2, ...]: cosines, then sines.

    Angles are taken from the first eighth of the circle, where they are rounded least.
    """
    eighths = 8 * (np.asarray(products, np.int64) % length)
    octant, rest = eighths // length, eighths % length
    mirrored = octant % 2 == 1
    angle = np.where(mirrored, length - rest, rest) * (np.pi / 4 / length)
    cos, sin = np.cos(angle), np.sin(angle)
    quarter = (octant + 1) // 2 % 4
    sin = np.where(mirrored, -sin, sin)
    real = np.choose(quarter, [cos, -sin, -cos, sin])
    imaginary = np.choose(quarter, [sin, cos, -sin, -cos])
    return np.stack([real, sign * imaginary])
