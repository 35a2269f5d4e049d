"""Roots of unity, accurate to the last bit."""

from __future__ import annotations

import numpy as np


def roots(products: np.ndarray, length: int, sign: int) -> np.ndarray:
    """Return ``exp(sign * 2i * pi * p / length)`` for each p of ``products``, as [2, ...].

    These are the cosines, then the sines.

    Cosine and sine are most accurate in the first eighth of the circle. So each angle is replaced:

    1. ``octant`` is its eighth of the circle, ``remainder`` the angle in it, in units of 1/length;
    2. in odd octants, the angle to the octant's end is taken, and its sine negated;
    3. the quarter turns from the first eighth swap and negate cosine and sine.
    """
    eighths = 8 * (np.asarray(products, np.int64) % length)
    octant, remainder = eighths // length, eighths % length
    from_end = octant % 2 == 1
    angle = np.where(from_end, length - remainder, remainder) * (np.pi / 4 / length)
    cos, sin = np.cos(angle), np.sin(angle)
    quarter = (octant + 1) // 2 % 4
    sin = np.where(from_end, -sin, sin)
    real = np.choose(quarter, [cos, -sin, -cos, sin])
    imaginary = np.choose(quarter, [sin, cos, -sin, -cos])
    return np.stack([real, sign * imaginary])
