"""Constants that repeat elements: NumPy arrays with stride 0 along some dims."""

from __future__ import annotations

import numpy as np


def is_repeated(array: np.ndarray) -> bool:
    """True if ``array`` has stride 0 along a dim of size above 1."""
    dims = zip(array.shape, array.strides, strict=True)
    return any(size > 1 and stride == 0 for size, stride in dims)


def without_repeats(array: np.ndarray) -> np.ndarray:
    """Return ``array`` without its repetitions: with size 1 along each dim of stride 0."""
    return array[tuple(slice(None if stride else 1) for stride in array.strides)]
