"""A compiled program in a file: how its library is called, apart from library and weights."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from smelt.runtime.jit import blas
from smelt.runtime.jit.library_call import bind
from smelt.runtime.jit.open_caller import OpenCaller
from smelt.runtime.jit.size_terms import Terms, TermSizes


@dataclass(frozen=True)
class StoredPort:
    """The name, the element type as NumPy names it, and the dims of an input or output."""

    name: str
    dtype: str
    dims: tuple[Terms, ...]

    def numpy(self) -> np.dtype:
        """Return the element type."""
        try:
            return np.dtype(self.dtype)
        except TypeError:  # a type that NumPy learns from this package, such as bfloat16
            import ml_dtypes

            kind: np.dtype = np.dtype(getattr(ml_dtypes, self.dtype))
            return kind


@dataclass(frozen=True)
class StoredProgram:
    """How to call ``function`` of a library; see ``LibraryCall`` and ``TermSizes``.

    ``bounds`` has the sizes that a run passes, none for a program of one set of shapes.
    """

    function: str
    bind_blas: str
    bind_threads: str
    inputs: tuple[StoredPort, ...]
    outputs: tuple[StoredPort, ...]
    bounds: Mapping[str, tuple[int, int]]
    memory_bytes: int

    def caller(
        self, library: ctypes.CDLL, weights: Sequence[np.ndarray], threads: int
    ) -> OpenCaller | None:
        """Return a caller of ``library``; None if it needs a BLAS that this machine lacks."""
        if self.bind_blas and blas.table() is None:
            return None
        bind(library, self.bind_blas, self.bind_threads, threads)
        inputs, outputs = ([port.dims for port in side] for side in (self.inputs, self.outputs))
        fit = TermSizes(inputs, outputs, self.bounds)
        dtypes = [port.numpy() for port in self.outputs]
        return OpenCaller(fit, dtypes, library, self.function, weights, self.memory_bytes)

    def to_json(self) -> dict[str, Any]:
        """Return a document that ``from_json`` reads."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> StoredProgram:
        """Return the program of a document; raises KeyError, TypeError or ValueError for others."""
        sides = {
            side: tuple(
                StoredPort(
                    port["name"],
                    port["dtype"],
                    tuple(
                        tuple((int(factor), tuple(names)) for factor, names in dim)
                        for dim in port["dims"]
                    ),
                )
                for port in document[side]
            )
            for side in ("inputs", "outputs")
        }
        bounds = {name: (int(low), int(high)) for name, (low, high) in document["bounds"].items()}
        return StoredProgram(**{**document, **sides, "bounds": bounds})
