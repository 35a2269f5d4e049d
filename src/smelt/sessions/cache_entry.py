"""Compiled sessions in the cache, which later processes run without compiling or running passes.

An entry is a folder: ``session.json`` describes the model and how to call its libraries, one for
each set of input shapes, and files of weights hold what the libraries read. Weights that a library
reads as they are in the model's files stay there. An entry is used only while the model's files,
this package, the C compiler and the CPU are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from smelt.runtime.jit.cache import Cache, check_private
from smelt.runtime.jit.caller import Port
from smelt.runtime.jit.library_call import LibraryCall

DOCUMENT = "session.json"
SCHEMA = "smelt.session/1"
ALIGNMENT = 64
MOST_BYTES = 1 << 28
"""The most bytes of weights that are copied into an entry; larger sessions are not kept."""

Shapes = tuple[tuple[int, ...], ...]
Identity = tuple[str, int, int, int, int, int]
"""A file: its path, size, times of change in nanoseconds, inode and device."""


def identity_of(path: str | os.PathLike[str]) -> Identity:
    """Return the identity of a file, which changes whenever its bytes do; raises OSError."""
    status = Path(path).stat()
    changed = (status.st_mtime_ns, status.st_ctime_ns)
    return (str(os.path.realpath(path)), status.st_size, *changed, status.st_ino, status.st_dev)


@dataclass
class CacheEntry:
    """A cached session in ``folder``: a JSON ``description`` of the model, and library calls.

    ``_calls`` has a call per set of input shapes, as JSON. ``_places`` maps the digest of a weight
    to the file of the entry that holds it; ``_maps`` has the mapped files by path.
    """

    folder: Path
    files: list[Identity]
    description: Mapping[str, Any]
    _calls: dict[Shapes, Any] = field(default_factory=dict)
    _places: dict[str, list[Any]] = field(default_factory=dict)
    _maps: dict[str, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def read(key: str) -> CacheEntry | None:
        """Return the entry called ``key``; None if there is none, or the model's files changed."""
        folder = Cache().root / key
        try:
            check_private(folder)
            document = json.loads((folder / DOCUMENT).read_bytes())
            if document["schema"] != SCHEMA:
                return None
            files = [tuple(identity) for identity in document["files"]]
            if any(identity_of(identity[0]) != identity for identity in files):
                return None
            os.utime(folder)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        calls = {_shapes(call["shapes"]): call for call in document["calls"]}
        return CacheEntry(folder, files, document["description"], calls, document["places"])

    @staticmethod
    def begin(key: str, files: list[Identity], description: Mapping[str, Any]) -> CacheEntry:
        """Return an entry without calls, which is written with its first call."""
        return CacheEntry(Cache().root / key, files, description)

    def call(self, shapes: Shapes) -> LibraryCall | None:
        """Return how to call the library for inputs of ``shapes``; None if it is not kept.

        Raises OSError or ValueError if a file is missing or damaged.
        """
        kept = self._calls.get(shapes)
        if kept is None:
            return None
        fields = {name: kept[name] for name in NAMES}
        for side in SIDES:
            fields[side] = [Port(_dtype(name), tuple(shape)) for name, shape in kept[side]]
        return LibraryCall(**fields, weights=[self._weight(place) for place in kept["weights"]])

    def add(self, call: LibraryCall) -> None:
        """Add a call and write the entry, unless it would be too large or the files changed."""
        try:
            if any(identity_of(identity[0]) != identity for identity in self.files):
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(self.folder)
            places = self._store(call.weights)
            if places is None:
                return
            shapes = tuple(port.shape for port in call.inputs)
            self._calls[shapes] = {
                "shapes": shapes,
                **{name: getattr(call, name) for name in NAMES},
                **{s: [(str(p.dtype), p.shape) for p in getattr(call, s)] for s in SIDES},
                "weights": places,
            }
            self._write()
        except OSError:
            return  # without an entry, a later process compiles again

    def _write(self) -> None:
        """Write the document in place of the former one; raises OSError."""
        document = {
            "schema": SCHEMA,
            "files": self.files,
            "description": self.description,
            "places": self._places,
            "calls": list(self._calls.values()),
        }
        _write_file(self.folder / DOCUMENT, json.dumps(document).encode())

    def _store(self, weights: Sequence[np.ndarray]) -> list[list[Any]] | None:
        """Return the place of each array: file or digest, offset, type, shape.

        An array that lies in one of the model's files stays there. Any other array goes to a file
        of the entry, and its digest is its place. None if these files would be too large.
        """
        known = {identity[0] for identity in self.files}
        places: list[list[Any]] = []
        new: dict[str, tuple[int, np.ndarray]] = {}
        end = 0
        for array in weights:
            place = _place_in(known, array)
            if place is None:
                digest = _digest(_bytes_of(array))
                if digest not in self._places and digest not in new:
                    new[digest] = (end, array)
                    end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
                place = [digest, 0]
            places.append([*place, str(array.dtype), array.shape])
        kept = sum(size for _, size in self._blobs().values())
        if end + kept > MOST_BYTES:
            return None
        if new:
            self._write_blob(new, end)
        return places

    def _blobs(self) -> dict[str, tuple[str, int]]:
        """Return the digest and the size of each of the entry's files of weights, by file name."""
        return {blob: (digest, size) for blob, digest, size, _ in self._places.values()}

    def _write_blob(self, arrays: Mapping[str, tuple[int, np.ndarray]], size: int) -> None:
        """Write ``arrays`` at their offsets to a new file, and note their places by digest."""
        data = np.zeros(size, np.uint8)
        for offset, array in arrays.values():
            data[offset : offset + array.nbytes] = _bytes_of(array)
        whole = _digest(data)
        name = f"weights-{whole[:16]}"
        _write_file(self.folder / name, data.data)
        for digest, (offset, _) in arrays.items():
            self._places[digest] = [name, whole, size, offset]

    def _weight(self, place: Sequence[Any]) -> np.ndarray:
        """Return the array at ``place``; raises OSError or ValueError if its file is damaged."""
        source, offset, dtype, shape = place
        if source in self._places:
            name, digest, size, offset = self._places[source]
            data = self._mapped(str(self.folder / name), digest, size)
        else:
            data = self._mapped(source)
        kind = _dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        return data[offset : offset + count * kind.itemsize].view(kind).reshape(shape)

    def _mapped(self, path: str, digest: str = "", size: int = 0) -> np.ndarray:
        """Return the bytes of a file of weights with this digest, or of a file of the model."""
        data = self._maps.get(path)
        if data is None:
            data = self._maps[path] = _map_file(path)
            if not digest:
                if identity_of(path) not in self.files:
                    raise ValueError(f"{path} has changed")
            elif data.nbytes != size or _digest(data) != digest:
                raise ValueError(f"{path} is damaged")
        return data


SIDES = ("inputs", "outputs")
NAMES = ("key", "function", "bind_blas", "bind_threads", "memory_bytes", "is_short")


def cached_caller(call: LibraryCall, threads: int) -> Any:
    """Return a caller of the library of ``call``; None if it is no longer in the cache.

    Raises OSError if the library does not load.
    """
    import ctypes

    from smelt.runtime.jit import blas

    if call.bind_blas and blas.table() is None:
        return None
    path = Cache().find(call.key)
    return None if path is None else call.caller(ctypes.CDLL(str(path)), threads)


def _place_in(files: set[str], array: np.ndarray) -> list[Any] | None:
    """Return which of ``files`` holds ``array``, and at what offset; None if none does."""
    from smelt.frontends.onnx.mapped import place_of

    place = place_of(array) if array.size else None
    path = None if place is None else os.path.realpath(place[0])
    return [path, place[1]] if place is not None and path in files else None


def _digest(data: np.ndarray) -> str:
    """Return the SHA-256 of the bytes ``data``."""
    return hashlib.sha256(data.data).hexdigest()


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of a row-major ``array``."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _dtype(name: str) -> np.dtype:
    """Return the NumPy type called ``name``, which may be one of ``ml_dtypes``."""
    try:
        dtype: np.dtype = np.dtype(name)
    except TypeError:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, name))
    return dtype


def _shapes(shapes: Sequence[Sequence[int]]) -> Shapes:
    """Return shapes of JSON as tuples."""
    return tuple(tuple(shape) for shape in shapes)


def _map_file(path: str) -> np.ndarray:
    """Return the bytes of a file, mapped."""
    if Path(path).stat().st_size == 0:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def _write_file(path: Path, data: bytes | memoryview) -> None:
    """Write a file of this user in one step."""
    number, name = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    Path(name).replace(path)
