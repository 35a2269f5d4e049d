"""A compiled library and everything that a call of it needs, apart from the compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smelt.runtime.jit import blas
from smelt.runtime.jit.caller import Caller, Entry, Port, caller
from smelt.runtime.jit.pool import parallel_for


@dataclass(frozen=True)
class LibraryCall:
    """How to call the library with the cache key ``key``; see ``Entry`` for the other fields.

    ``function`` is its name in the library. ``bind_blas`` and ``bind_threads`` are the functions
    that take the table of BLAS and the thread pool, empty if the library uses neither.
    """

    key: str
    function: str
    bind_blas: str
    bind_threads: str
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    weights: Sequence[np.ndarray]
    memory_bytes: int
    is_short: bool

    def caller(self, library: ctypes.CDLL, threads: int) -> Caller:
        """Return a caller of ``library`` after passing it BLAS and the thread pool."""
        return caller(self.entry(library, threads))

    def entry(self, library: ctypes.CDLL, threads: int) -> Entry:
        """Return the program in ``library`` after passing it BLAS and the thread pool."""
        bind(library, self.bind_blas, self.bind_threads, threads)
        run = ctypes.cast(library[self.function], ctypes.c_void_p).value
        assert run is not None
        return Entry(
            run,
            library,
            self.inputs,
            self.outputs,
            self.weights,
            self.memory_bytes,
            self.is_short,
        )


def bind(library: ctypes.CDLL, bind_blas: str, bind_threads: str, threads: int) -> None:
    """Pass BLAS and the thread pool to the functions of ``library`` with these names, if any."""
    if bind_blas:
        library[bind_blas](blas.table())
        if threads > 1:
            blas.use_one_thread()
    if bind_threads:
        library[bind_threads](parallel_for())
