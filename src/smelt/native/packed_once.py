"""Weights in the order in which kernels read them, made once for all programs of the same weights.

A ``WeightFile`` takes them out of memory: what is made goes to the file, and is mapped.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from smelt.ir.tensors.mapped_pages import ReadOnlyMap, forget_pages, map_under
from smelt.native.repeated import is_repeated

LINE = 64
"""The bytes of a cache line, at which packed weights begin."""

SMALLEST = 1 << 16
"""Arrays of fewer bytes stay in memory."""

_Key = tuple[int | bytes, str, tuple[int, ...], tuple[int, ...], Hashable]
_made: dict[_Key, tuple[weakref.ref[np.ndarray], np.ndarray | None]] = {}
"""What ``packed_once`` returned and is in use, with the mapped array it was made of, if any. As
long as it is in use, that array stays, so that no other array gets its address."""


def packed_once(source: np.ndarray, how: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return ``make()``, an array made of ``source``; ``how`` tells what is made of it.

    Calls with equal sources and the same ``how`` return the same array while it is in use. A source
    in a mapped file is known by its address. One in memory is known by its bytes, since its owner
    may write to it between two calls. Into the file of ``weights_in``, equal arrays made of sources
    in memory are written once.
    """
    is_mapped, file = map_under(source) is not None, _file.get()
    if file is not None and not is_mapped:
        made = make()
        return file.add_once(made, hashlib.sha256(made.data).digest())
    identity = source.ctypes.data if is_mapped else _digest(source)
    key = (identity, source.dtype.str, source.shape, source.strides, how)
    known = _made.get(key)
    shared = None if known is None else known[0]()
    if shared is not None:
        return shared
    made = make()
    if file is not None:
        made = file.add(made)
        forget_pages(source)
    _made[key] = weakref.ref(made, lambda _: _made.pop(key, None)), source if is_mapped else None
    return made


def _digest(array: np.ndarray) -> bytes:
    """Return the SHA-256 of the elements of ``array`` in C order."""
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).digest()


def aligned_empty(size: int, dtype: type[np.generic]) -> np.ndarray:
    """Return uninitialized memory for ``size`` elements that begins at a cache line."""
    nbytes = size * np.dtype(dtype).itemsize
    memory = np.empty(nbytes + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + nbytes].view(dtype)


class WeightFile:
    """A new file at ``path`` with arrays, which are mapped in place of memory.

    ``places`` has the offset of each array by its address; ``digest`` is that of all bytes so far.
    """

    def __init__(self, path: Path) -> None:
        self.digest = hashlib.sha256()
        self.end = 0
        self.places: dict[int, int] = {}
        self._by_digest: dict[bytes, np.ndarray] = {}
        self._maps: list[ReadOnlyMap] = []
        self._file = path.open("w+b")

    def write(self, data: np.ndarray, alignment: int) -> int:
        """Append the bytes of ``data`` and return their offset; raises OSError."""
        padding = np.zeros(-self.end % alignment, np.uint8)
        for part in (padding, data.reshape(-1).view(np.uint8)):
            self._file.write(part.data)
            self.digest.update(part.data)
        start = self.end + padding.nbytes
        self.end = start + data.nbytes
        return start

    def add(self, array: np.ndarray) -> np.ndarray:
        """Return ``array`` mapped from the file; itself if it is small or the disk is full."""
        if array.nbytes < SMALLEST or array.ctypes.data in self.places:
            return array
        data = np.ascontiguousarray(array)
        try:
            start = self.write(data, mmap.ALLOCATIONGRANULARITY)
            self._file.flush()
            mapped = ReadOnlyMap(
                self._file.fileno(), data.nbytes, access=mmap.ACCESS_READ, offset=start
            )
        except OSError:
            return array
        view = np.frombuffer(mapped, data.dtype).reshape(array.shape)
        self.places[view.ctypes.data] = start
        self._maps.append(mapped)
        return view

    def add_once(self, array: np.ndarray, digest: bytes) -> np.ndarray:
        """Return ``array`` as ``add`` does; arrays of equal ``digest`` are written once."""
        if digest not in self._by_digest:
            view = self.add(array)
            if view is array:
                return array
            self._by_digest[digest] = view
            forget_pages(array)
        return self._by_digest[digest].reshape(array.shape)

    def close(self) -> None:
        """Write what is buffered. What was mapped stays so, but its pages are dropped."""
        self._file.close()
        for mapped in self._maps:
            forget_pages(np.frombuffer(mapped, np.uint8))
        self._maps.clear()


_file: ContextVar[WeightFile | None] = ContextVar("smelt.weight_file", default=None)


@contextlib.contextmanager
def weights_in(file: WeightFile | None) -> Iterator[None]:
    """Put weights that are packed inside of the block into ``file``, unless it is None.

    Products of one row and of many then read weights in the same order, so that they share them.
    """
    token = _file.set(file)
    try:
        yield
    finally:
        _file.reset(token)


def is_shared() -> bool:
    """True inside of ``weights_in`` a file."""
    return _file.get() is not None


def digest_in_file(array: np.ndarray) -> bytes | None:
    """Return bytes that only equal arrays have, without reading ``array``, if it is in the file of
    this block; else None."""
    file, address = _file.get(), array.ctypes.data
    is_mapped = file is not None and address in file.places
    return b"mapped %d" % address if is_mapped else None


def in_file(array: np.ndarray, digest: bytes) -> np.ndarray:
    """Return ``array`` mapped from the file of this block; itself without one, or if it repeats
    elements."""
    file = _file.get()
    return array if file is None or is_repeated(array) else file.add_once(array, digest)
