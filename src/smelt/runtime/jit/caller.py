"""Call a compiled program on arrays: by an extension of CPython, or by ctypes without its headers.

A caller takes one array an input and returns a tuple of new arrays; it returns None where arrays
are not exactly as the program takes them, dense ones of the right type and shape, and where the
program says that it could not end. Calls in several threads run at once, each in memory of its own.
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
from smelt.runtime.jit.build import built, say_once

Caller: TypeAlias = Callable[..., tuple[np.ndarray, ...] | None]
ALIGNMENT = 64


@dataclass(frozen=True)
class Port:
    """What an input or an output is."""

    dtype: np.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """What a compiled program is called with.

    ``run`` is the address of ``int run(inputs, outputs, memory, weights)``, which returns 0 when
    it is done; ``weights`` are arrays that it reads, ``memory_bytes`` what it writes besides
    outputs. ``is_short``: whether it is over before another thread could do something meanwhile.
    ``library`` is kept loaded.
    """

    run: int
    library: object
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    weights: Sequence[np.ndarray]
    memory_bytes: int
    is_short: bool = False


def caller(entry: Entry) -> Caller:
    """What calls ``entry``."""
    module = extension()
    return _by_ctypes(entry) if module is None else _by_extension(module, entry)


@cache
def extension() -> ModuleType | None:
    """The extension, built on first use; None without the headers of Python."""
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
        say_once(f"calls of compiled programs are slower: no extension could be made: {error}")
        return None


def _imported(path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader("smelt_caller", str(path))
    spec = importlib.util.spec_from_loader("smelt_caller", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _by_extension(module: ModuleType, entry: Entry) -> Caller:
    weights = _addresses(entry.weights)
    ports = [tuple((p.dtype, p.shape) for p in side) for side in (entry.inputs, entry.outputs)]
    owner = (entry, weights)
    made: Caller = module.caller(
        entry.run, ctypes.addressof(weights), *ports, entry.memory_bytes, not entry.is_short, owner
    )
    return made


def _by_ctypes(entry: Entry) -> Caller:
    weights = _addresses(entry.weights)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 4)
    function = kind(entry.run)
    inputs, outputs = entry.inputs, entry.outputs

    def call(*given: np.ndarray) -> tuple[np.ndarray, ...] | None:
        if len(given) != len(inputs) or not all(map(_fits, given, inputs)):
            return None
        results = tuple(np.empty(port.shape, port.dtype) for port in outputs)
        memory = np.empty(entry.memory_bytes + ALIGNMENT, np.uint8)
        start = memory.ctypes.data
        start += -start % ALIGNMENT
        status = function(_addresses(given), _addresses(results), start, weights)
        return None if status else results

    return call


def _fits(given: np.ndarray, port: Port) -> bool:
    if type(given) is not np.ndarray or given.dtype != port.dtype or given.shape != port.shape:
        return False
    return given.flags.c_contiguous and given.flags.aligned


def _addresses(arrays: Sequence[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
