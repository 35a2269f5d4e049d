"""Panels of float weights: the columns that a micro-kernel reads, row by row."""

from __future__ import annotations

import numpy as np

from smelt.native.kernels.vector import MOST_LANES
from smelt.native.packed_once import aligned_empty, is_shared, packed_once
from smelt.program.run_sizes import highest

MOST_VECTORS = 8
PANEL = 2 * MOST_LANES
NARROW = MOST_LANES
"""The multiple that the last panel of a constant is padded to."""


def panel_for(rows: int) -> int:
    """Return the columns of a packed panel: more for few rows, which need more sums at a time."""
    return PANEL * 2 if highest(rows) <= 3 and not is_shared() else PANEL


def pack(matrix: np.ndarray, rows: int) -> np.ndarray:
    """Return ``[k, n]`` as panels ``[k][columns]``, the last one padded, with room for a vector."""
    panel = panel_for(rows)
    return packed_once(matrix, ("panels", panel), lambda: _packed(matrix, panel))


def _packed(matrix: np.ndarray, panel: int) -> np.ndarray:
    """Return ``matrix`` as new panels of ``panel`` columns."""
    depth, count = matrix.shape
    padded = -(-count // NARROW) * NARROW
    packed = aligned_empty(padded * depth + MOST_VECTORS * MOST_LANES, np.float32)
    end = 0
    for first in range(0, count, panel):
        columns = matrix[:, first : first + panel]
        width = min(panel, padded - first)
        rows = packed[end : end + depth * width].reshape(depth, width)
        rows[:, : columns.shape[1]] = columns
        rows[:, columns.shape[1] :] = 0
        end += depth * width
    packed[end:] = 0
    return packed
