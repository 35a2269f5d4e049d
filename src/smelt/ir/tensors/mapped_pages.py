"""Give memory of mapped files back to the system once it was read."""

from __future__ import annotations

import mmap

import numpy as np


class ReadOnlyMap(mmap.mmap):
    """A file that is mapped to be read: pages that are dropped are read again when needed."""


def map_under(array: np.ndarray) -> ReadOnlyMap | None:
    """Return the mapped file that ``array`` shows, None if it is in memory."""
    base: object = array
    while base is not None and not isinstance(base, ReadOnlyMap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return base


def forget_pages(array: np.ndarray) -> None:
    """Drop the whole pages under ``array`` from this process if it shows a mapped file."""
    mapped = map_under(array)
    if mapped is None or not hasattr(mapped, "madvise") or not array.size:
        return
    low, high = np.lib.array_utils.byte_bounds(array)
    start = np.frombuffer(mapped, np.uint8, 1).ctypes.data
    first = -(-(low - start) // mmap.PAGESIZE) * mmap.PAGESIZE
    count = (high - start) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if count > 0:
        mapped.madvise(mmap.MADV_DONTNEED, first, count)
