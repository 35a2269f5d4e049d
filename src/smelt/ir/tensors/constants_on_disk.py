"""Moves large computed constants from memory to a temporary file during a compile.

A model may hold more weights than there is memory: its own weights stay in their mapped file.
Weights that passes transpose or scale stay in memory as long as their sum is small; others go to a
temporary file, which is mapped too. It has no name, so it disappears with the last array over it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np

from smelt.ir.tensors.chunks import array_chunks
from smelt.ir.tensors.mapped_pages import ReadOnlyMap

SPILLED = 1 << 20
"""Size in bytes from which a constant may be moved to a file."""

IN_MEMORY = 1 << 27
"""Bytes of large constants of one compile that stay in memory: writing and mapping them takes
longer than computing them. Constants of earlier compiles do not count: most await garbage
collection."""

SEGMENT = 1 << 28
"""Bytes of one file; a larger array gets its own. Each file costs a file descriptor."""

ALIGNMENT = 64

Arrays: TypeAlias = "weakref.WeakValueDictionary[int, np.ndarray]"
"""Arrays by their id, as long as they are alive."""

_lock = threading.Lock()
_current: weakref.ref[_Segment] | None = None
_outside_of_compiles: Arrays = weakref.WeakValueDictionary()
_in_memory: ContextVar[Arrays | None] = ContextVar("in memory", default=None)
_owned: Arrays = weakref.WeakValueDictionary()


@contextmanager
def new_memory_budget() -> Iterator[None]:
    """Count large constants in memory from 0 within this context."""
    token = _in_memory.set(weakref.WeakValueDictionary())
    try:
        yield
    finally:
        _in_memory.reset(token)


def note_owned(array: np.ndarray) -> None:
    """Note that a model owns the memory of ``array``, so views of it are not moved to a file."""
    root = _root(array)
    if root.nbytes >= SPILLED:
        _owned[id(root)] = root


def spilled(array: np.ndarray) -> np.ndarray:
    """Return ``array``, or a mapped copy of it if the memory limit is reached.

    Views of constants of a model and of mapped files are returned unchanged, and so is every array
    if no file can be created.
    """
    root = _root(array)
    if array.nbytes < SPILLED or array.dtype.hasobject or not _is_new(root):
        return array
    in_memory = _in_memory.get()
    in_memory = _outside_of_compiles if in_memory is None else in_memory
    with _lock:
        if (
            sum(array_in_memory.nbytes for array_in_memory in in_memory.values()) + root.nbytes
            <= IN_MEMORY
        ):
            in_memory[id(root)] = _owned[id(root)] = root
            return array
        try:
            return _segment_for(array.nbytes).add(array)
        except OSError:
            return array


def _root(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of ``array``."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _is_new(root: np.ndarray) -> bool:
    """True if ``root`` owns its memory and no model does."""
    return root.flags.owndata and _owned.get(id(root)) is not root


def _segment_for(size: int) -> _Segment:
    """Return the open segment if ``size`` bytes fit, else a new one."""
    global _current  # noqa: PLW0603 - the segment that is being filled, as long as it is read
    segment = _current() if _current is not None else None
    if segment is None or not segment.fits(size):
        segment = _Segment.new(max(SEGMENT, size))
        _current = weakref.ref(segment)
    return segment


def _folder() -> Path | None:
    """Return a folder on a disk, because ``/tmp`` is often in memory; None for the system's
    default."""
    lasting = Path("/var/tmp")
    chosen = os.environ.get("TMPDIR") or not os.access(lasting, os.W_OK)
    return None if chosen else lasting


class _Segment(ReadOnlyMap):
    """A mapped file without a name; arrays over it keep it open."""

    used: int
    file: BinaryIO

    @classmethod
    def new(cls, size: int) -> _Segment:
        """Return a segment of ``size`` bytes in a new temporary file."""
        file = tempfile.TemporaryFile(dir=_folder(), prefix="smelt-")  # noqa: SIM115 - it stays open
        try:
            file.truncate(size)
            segment = cls(file.fileno(), size, access=mmap.ACCESS_READ)
        except BaseException:
            file.close()
            raise
        segment.file, segment.used = file, 0
        return segment

    def fits(self, size: int) -> bool:
        """True if ``size`` more bytes fit into the file."""
        return self.used + size <= len(self)

    def add(self, array: np.ndarray) -> np.ndarray:
        """Write ``array`` to the file and return a mapped copy; raises OSError if the disk is
        full."""
        start = end = self.used
        for chunk in array_chunks(array):
            begun = end
            while end < begun + len(chunk):
                end += os.pwrite(self.file.fileno(), chunk[end - begun :], end)
        self.used = min(-(-end // ALIGNMENT) * ALIGNMENT, len(self))
        view = np.frombuffer(self, array.dtype, array.size, start)
        return view.reshape(array.shape)
