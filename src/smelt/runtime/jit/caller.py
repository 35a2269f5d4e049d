"""Call a compiled program on arrays, through a CPython extension or else ctypes.

A caller takes one array per input and returns a tuple of new arrays. It returns None if an array is
not dense, aligned and of the exact type and shape, or if the program reports failure. Calls from
several threads run concurrently, each with its own memory.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import numpy as np

from smelt.errors import SmeltError
from smelt.runtime.jit.build import built, warn_once

Caller: TypeAlias = Callable[..., tuple[np.ndarray, ...] | None]
ALIGNMENT = 64


@dataclass(frozen=True)
class Port:
    """The element type and shape of an input or output."""

    dtype: np.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A compiled program and everything that a call needs.

    ``run`` is the address of ``int run(inputs, outputs, memory, weights)``, which returns 0 on
    success; ``weights`` are arrays that it reads, ``memory_bytes`` the size of its workspace.
    ``is_short`` is True if a run is so short that releasing the GIL would cost more. ``library`` is
    kept loaded.
    """

    run: int
    library: object
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    weights: Sequence[np.ndarray]
    memory_bytes: int
    is_short: bool = False


def caller(entry: Entry) -> Caller:
    """Return a caller of ``entry``."""
    module = extension()
    return _by_ctypes(entry) if module is None else _by_extension(module, entry)


@cache
def extension() -> ModuleType | None:
    """Build and import the extension on first use; None without the headers of Python."""
    include = Path(sysconfig.get_paths()["include"])
    if sys.implementation.name != "cpython" or not (include / "Python.h").is_file():
        return None
    flags = [f"-I{include}", f"-I{np.get_include()}"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    text = Path(__file__).with_name("caller.c").read_text("ascii")
    try:
        with built(text, flags, depends=f"{sys.version} {np.__version__}") as path:
            return _imported(path)
    except (SmeltError, ImportError, OSError) as error:
        warn_once(f"calls of compiled programs are slower: no extension could be built: {error}")
        return None


def _imported(path: Path) -> ModuleType:
    """Return the extension module, loaded from ``path``."""
    loader = importlib.machinery.ExtensionFileLoader("smelt_caller", str(path))
    spec = importlib.util.spec_from_loader("smelt_caller", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _by_extension(module: ModuleType, entry: Entry) -> Caller:
    """Return a caller of ``entry`` through the extension."""
    weights = addresses(entry.weights)
    ports = [tuple((p.dtype, p.shape) for p in side) for side in (entry.inputs, entry.outputs)]
    owner = (entry, weights)
    caller_of_entry: Caller = module.caller(
        entry.run, ctypes.addressof(weights), *ports, entry.memory_bytes, not entry.is_short, owner
    )
    return caller_of_entry


def _by_ctypes(entry: Entry) -> Caller:
    """Return a caller of ``entry`` through ctypes."""
    weights = addresses(entry.weights)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 4)
    function = kind(entry.run)
    inputs, outputs = entry.inputs, entry.outputs

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Run ``entry``; None if the arrays do not fit or the run fails."""
        if len(arrays) != len(inputs) or not all(map(_fits, arrays, inputs)):
            return None
        results = tuple(np.empty(port.shape, port.dtype) for port in outputs)
        memory = np.empty(entry.memory_bytes + ALIGNMENT, np.uint8)
        start = memory.ctypes.data
        start += -start % ALIGNMENT
        status = function(addresses(arrays), addresses(results), start, weights)
        return None if status else results

    return call


def _fits(array: np.ndarray, port: Port) -> bool:
    """True if ``array`` is dense, aligned and of the exact type and shape."""
    if type(array) is not np.ndarray or array.dtype != port.dtype or array.shape != port.shape:
        return False
    return array.flags.c_contiguous and array.flags.aligned


def addresses(arrays: Sequence[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the addresses of ``arrays`` as a C array."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
