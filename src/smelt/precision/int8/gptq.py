"""Round a weight to int4 row by row, and let later rows make up for the error of earlier ones.

With rows ``X`` of the activation, the squared error of ``X @ w`` is a quadratic form of the error
of ``w`` with the matrix ``H = X' X``. After a row of ``w`` is rounded, the best change of the rows
that are not rounded yet follows from the Cholesky factor of the inverse of ``H`` (GPTQ).
"""

from __future__ import annotations

import numpy as np
from ml_dtypes import int4

from smelt.precision.int8.linear import Codes, int4_blocks

DAMPING = 0.01
"""The part of the mean diagonal that is added to the diagonal of H, so that H has an inverse."""

AT_ONCE = 128
"""The rows after which the changes reach all later rows."""


def compensated_blocks(weight: np.ndarray, axis: int, block: int, rows: np.ndarray) -> Codes:
    """Return int4 codes of a matrix with a scale for ``block`` elements along ``axis``.

    ``rows`` are rows of the activation, of the size of ``axis``. The scale of each block is that of
    ``int4_blocks`` of the numbers that the block has once it is rounded.
    """
    work = np.ascontiguousarray(np.moveaxis(weight, axis, 0), np.float32).copy()
    inner = len(work)
    factor = _factor(rows)
    codes = np.empty(work.shape, np.float32)
    scales = np.empty((-(-inner // block), work.shape[1]), np.float32)
    for start in range(0, inner, AT_ONCE):
        stop = min(start + AT_ONCE, inner)
        errors = np.empty((stop - start, work.shape[1]), np.float32)
        for row in range(start, stop):
            if row % block == 0:
                scales[row // block] = int4_blocks(work[row : row + block], 0, block).scale[0]
            scale = scales[row // block]
            codes[row] = np.clip(np.rint(work[row] / scale), -8, 7)
            error = (work[row] - codes[row] * scale) / factor[row, row]
            work[row + 1 : stop] -= np.outer(factor[row, row + 1 : stop], error)
            errors[row - start] = error
        work[stop:] -= factor[start:stop, stop:].T @ errors
    stored = np.moveaxis(codes, 0, axis).astype(int4)
    return Codes(stored, np.ascontiguousarray(np.moveaxis(scales, 0, axis)), axis, block)


def _factor(rows: np.ndarray) -> np.ndarray:
    """Return the upper Cholesky factor of the inverse of ``rows' rows``, damped."""
    wide = rows.astype(np.float64)
    gram = wide.T @ wide
    mean = float(np.mean(np.diag(gram))) or 1.0
    gram[np.diag_indices_from(gram)] += DAMPING * mean
    lower = np.linalg.cholesky(np.linalg.inv(gram))
    return np.ascontiguousarray(lower.T, np.float32)
