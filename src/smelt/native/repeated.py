"""Constants that repeat their elements: NumPy arrays with stride 0 along some dims."""

from __future__ import annotations

import numpy as np


def is_repeated(array: np.ndarray) -> bool:
    """True if a dim of ``array`` repeats elements."""
    dims = zip(array.shape, array.strides, strict=True)
    return any(size > 1 and stride == 0 for size, stride in dims)


def once(array: np.ndarray) -> np.ndarray:
    """The elements of ``array`` without what it repeats: size 1 along those dims."""
    return array[tuple(slice(None if stride else 1) for stride in array.strides)]
