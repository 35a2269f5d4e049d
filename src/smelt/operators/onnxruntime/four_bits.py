"""Round numbers to 4-bit codes in blocks that share a scale: int4, and NF4 by its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ml_dtypes import int4, uint4

from smelt.operators.onnxruntime.microsoft.packed_floats import TABLES

NF4 = np.asarray(TABLES[1], np.float32)
"""The number of each code of NF4, ascending from -1 to 1."""

ZERO_OF_NF4 = 7
"""The code of NF4 that stands for 0."""

_BORDERS = (NF4[1:] + NF4[:-1]) / 2

LEAST_SCALE = float(np.finfo(np.float32).tiny)
"""The least normal float32. A block whose scale would be smaller, as of zeros, gets scale 1."""


@dataclass(frozen=True)
class Grid:
    """The 16 numbers of a 4-bit type: a code stands for one of them times the scale of its block.

    ``dtype`` is the type of the codes, ``largest`` the number to which a block's peak is scaled.
    ``codes`` returns the nearest codes, as floats, and ``numbers`` what codes stand for. ``parts``
    are the scales that are tried, as parts of the scale that maps a block's peak to ``largest``.
    """

    dtype: np.dtype[np.generic]
    largest: float
    parts: np.ndarray
    codes: Callable[[np.ndarray], np.ndarray]
    numbers: Callable[[np.ndarray], np.ndarray]

    def full_scale(self, peak: np.ndarray) -> np.ndarray:
        """Return the scale that maps ``peak``, the largest magnitude of a block, to ``largest``."""
        small = peak < LEAST_SCALE
        return np.asarray(np.where(small, np.float32(1), peak / np.float32(self.largest)))

    def best_scale(self, blocks: np.ndarray) -> np.ndarray:
        """Return the scale of each of ``blocks`` [..., block] with the least squared error.

        A scale below the full one clips the largest numbers, and rounds the others less.
        """
        full = self.full_scale(np.abs(blocks).max(axis=-1))
        best_error, scale = np.full(full.shape, np.inf, np.float32), full
        for part in self.parts.astype(np.float32):
            trial = full * part
            rounded = self.rounded(blocks, trial[..., None])
            with np.errstate(over="ignore"):  # without a finite error, the full scale stays
                error = np.square(rounded - blocks).sum(axis=-1)
            better = error < best_error
            scale, best_error = np.where(better, trial, scale), np.where(better, error, best_error)
        return np.asarray(scale)

    def rounded(self, numbers: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the nearest numbers of the grid times ``scale``."""
        return np.asarray(self.numbers(self.codes(numbers / scale)) * scale)


def _nearest_nf4(numbers: np.ndarray) -> np.ndarray:
    """Return the code of the nearest number of NF4, as float32."""
    return np.searchsorted(_BORDERS, numbers).astype(np.float32)


INT4 = Grid(
    np.dtype(int4),
    7,
    np.linspace(1.0, 0.56, 12),
    lambda numbers: np.clip(np.rint(numbers), -8, 7),
    lambda codes: codes,
)
NORMAL_FLOAT4 = Grid(
    np.dtype(uint4),
    1,
    np.asarray([1.0, 0.95, 0.9, 0.85, 0.8, 1.05, 1.1]),
    _nearest_nf4,
    lambda codes: NF4[codes.astype(np.uint8)],
)


def grid_of(dtype: np.dtype[np.generic]) -> Grid:
    """Return the grid whose codes have ``dtype``."""
    return NORMAL_FLOAT4 if dtype == NORMAL_FLOAT4.dtype else INT4
