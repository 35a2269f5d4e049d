"""Round a weight to 4 bits row by row, and let later rows make up for the error of earlier ones.

For rows ``X`` of the activation and an error ``e`` of ``w``, the squared error of ``X @ w`` is
``e' H e`` with ``H = X' X``. ``U`` is the upper Cholesky factor of the inverse of ``H``. After row
``i`` is rounded from ``w[i]`` to ``q[i]``, the best change of the later rows is (GPTQ):

    w[i+1:] -= U[i, i+1:]' (w[i] - q[i]) / U[i, i]
"""

from __future__ import annotations

import numpy as np

from smelt.operators.onnxruntime.four_bits import Grid
from smelt.precision.int8.linear import Codes, weight_blocks

DAMPING = 0.01
"""The part of the mean diagonal that is added to the diagonal of H, so that H has an inverse."""

AT_ONCE = 128
"""Rows that are rounded before their errors change all rows behind them, by one product."""


def compensated_blocks(
    weight: np.ndarray, axis: int, block: int, rows: np.ndarray, grid: Grid
) -> Codes:
    """Return 4-bit codes of a matrix with a scale for ``block`` elements along ``axis``.

    ``rows``, [N, inner], are rows of the activation that the product sums over ``axis``. A block
    gets its scale by ``weight_blocks`` when its first row is rounded, from the numbers that the
    errors of earlier rows have left it.
    """
    work = np.ascontiguousarray(np.moveaxis(weight, axis, 0), np.float32).copy()
    inner = len(work)
    factor = _inverse_factor(rows)
    codes = np.empty(work.shape, np.float32)
    scales = np.empty((-(-inner // block), work.shape[1]), np.float32)
    for start in range(0, inner, AT_ONCE):
        stop = min(start + AT_ONCE, inner)
        errors = np.empty((stop - start, work.shape[1]), np.float32)
        for row in range(start, stop):
            if row % block == 0:
                ahead = work[row : row + block]
                scales[row // block] = weight_blocks(ahead, 0, block, grid).scale[0]
            scale = scales[row // block]
            codes[row] = grid.codes(work[row] / scale)
            error = (work[row] - grid.numbers(codes[row]) * scale) / factor[row, row]
            work[row + 1 : stop] -= np.outer(factor[row, row + 1 : stop], error)
            errors[row - start] = error
        work[stop:] -= factor[start:stop, stop:].T @ errors
    stored = np.moveaxis(codes, 0, axis).astype(grid.dtype)
    return Codes(stored, np.ascontiguousarray(np.moveaxis(scales, 0, axis)), axis, block)


def _inverse_factor(rows: np.ndarray) -> np.ndarray:
    """Return U, upper triangular, with ``U' U`` the inverse of ``rows' rows`` plus damping.

    Without damping, channels that are always 0, or fewer rows than channels, leave no inverse.
    """
    wide = rows.astype(np.float64)
    gram = wide.T @ wide
    mean = float(np.mean(np.diag(gram))) or 1.0
    gram[np.diag_indices_from(gram)] += DAMPING * mean
    lower = np.linalg.cholesky(np.linalg.inv(gram))
    return np.ascontiguousarray(lower.T, np.float32)
