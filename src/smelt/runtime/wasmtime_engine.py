"""Run a module in the package wasmtime, where there is no Node."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smelt.runtime.interface import Interface
from smelt.runtime.run_bounds import RunBounds
from smelt.runtime.wasm_exports import LENGTHS, RUN, SIZES, WEIGHTS


class Wasmtime:
    """An instance of a module, whose memory this process reads and writes."""

    def __init__(
        self,
        files_by_name: Mapping[str, bytes],
        name: str,
        interface: Interface,
        sizes: RunBounds,
        lengths: RunBounds,
    ) -> None:
        """Compile and instantiate the module; weights in a file of their own are copied into it."""
        import wasmtime

        engine = wasmtime.Engine()
        self.interface, self.sizes, self.lengths = interface, sizes, lengths
        self._store: Any = wasmtime.Store(engine)
        module = wasmtime.Module(engine, files_by_name[f"{name}.wasm"])
        self._exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        weights = files_by_name.get(f"{name}.weights")
        if weights is not None:
            self._write(WEIGHTS, weights)

    def __call__(
        self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], most: Sequence[int]
    ) -> tuple[int, list[bytes], list[int]]:
        """Run once; each result has the bytes of its largest size, ``most``."""
        for number, array in enumerate(arrays):
            self._write(f"input{number}", array.tobytes())
        if self.sizes:
            self._write(SIZES, np.array([sizes[name] for name in self.sizes], "<i4").tobytes())
        status = self._exports[RUN](self._store)
        results = [self._read(f"output{i}", count) for i, count in enumerate(most)]
        lengths = self._read(LENGTHS, 4 * len(self.lengths)) if self.lengths else b""
        return status, results, np.frombuffer(lengths, "<i4").tolist()

    def _address(self, name: str) -> int:
        """Return the address in this process of the exported global ``name``."""
        start = ctypes.addressof(self._exports["memory"].data_ptr(self._store).contents)
        return int(start + (self._exports[name].value(self._store) & 0xFFFFFFFF))

    def _write(self, name: str, data: bytes) -> None:
        """Copy ``data`` to the buffer ``name``."""
        ctypes.memmove(self._address(name), data, len(data))

    def _read(self, name: str, count: int) -> bytes:
        """Return the first ``count`` bytes of the buffer ``name``."""
        return ctypes.string_at(self._address(name), count)
