"""Compiled programs as custom calls of XLA, without Python in between."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from smelt.errors import SmeltError
from smelt.runtime.jit.build import built, warn_once
from smelt.runtime.jit.caller import Entry, addresses
from smelt.targets.base import Artifact
from smelt.targets.host.native_program import native_program

TARGET = "smelt_program"
"""The name of the custom call in programs of XLA; its attribute ``program`` is a number."""

_entries: dict[int, tuple[Entry, object]] = {}
"""The programs that XLA may call, by number, with what must stay in memory for them."""


def called_by_xla(
    artifact: Artifact, results: Sequence[jax.ShapeDtypeStruct], operands: Sequence[Any]
) -> list[Any]:
    """Return the results of ``artifact``, which ``is_library`` says has a compiled program."""
    number = _number(artifact, operands)
    assert isinstance(number, int)
    call = jax.ffi.ffi_call(TARGET, list(results))
    return list(call(*operands, program=np.int64(number)))


def is_library(artifact: Artifact, operands: Sequence[Any]) -> bool:
    """True if XLA can call the compiled program of ``artifact`` for values like ``operands``."""
    return isinstance(_number(artifact, operands), int)


def why_no_library(artifact: Artifact, operands: Sequence[Any]) -> str:
    """Return why XLA cannot call a compiled program of ``artifact``; empty if it can."""
    number = _number(artifact, operands)
    return "" if isinstance(number, int) else number


def _number(artifact: Artifact, operands: Sequence[Any]) -> int | str:
    """Return the number of the compiled program for values like ``operands``, or why none is."""
    shapes: list[tuple[int, ...]] = []
    for each in operands:
        if not all(isinstance(size, int) for size in each.shape):
            return "sizes are not known"
        shapes.append((*each.shape, *((2,) if np.dtype(each.dtype).kind == "c" else ())))
    program = native_program(artifact, shapes)
    if isinstance(program, str):
        return program
    call, entry = program
    try:
        return number_of(call.key, entry)
    except OSError as error:
        return str(error).partition("\n")[0]


def number_of(key: str, entry: Entry) -> int:
    """Return the number of a program whose library has ``key``, after registering it.

    It depends on nothing but the program, so that JAX finds its own compiled programs in its cache.
    Raises OSError if the custom call cannot be built.
    """
    digest = hashlib.sha256(f"{key} {entry.memory_bytes}".encode())
    for weight in entry.weights:
        digest.update(f"{weight.dtype} {weight.shape}".encode())
        digest.update(np.ascontiguousarray(weight).reshape(-1).view(np.uint8).data)
    number = int.from_bytes(digest.digest()[:8], "little", signed=True)
    if number not in _entries:
        weights = addresses(entry.weights)
        counts = len(entry.inputs), len(entry.outputs)
        memory = ctypes.c_size_t(entry.memory_bytes)
        if _library()["smelt_add"](
            ctypes.c_int64(number),
            *map(ctypes.c_int64, counts),
            ctypes.c_void_p(entry.run),
            weights,
            memory,
        ):
            raise OSError("no memory is left for the custom call")
        _entries[number] = entry, weights
    return number


@cache
def _library() -> ctypes.CDLL:
    """Build the library of the custom call, and register it with XLA; raises OSError."""
    text = Path(__file__).with_name("jax_call.c").read_text("ascii")
    flags = [f"-I{jax.ffi.include_dir()}", "-pthread"]
    try:
        with built(text, flags, depends=jax.__version__) as path:
            library = ctypes.CDLL(str(path))
    except SmeltError as error:
        warn_once(f"JAX calls smelt by callbacks: the custom call could not be built: {error}")
        raise OSError(str(error)) from error
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.smelt_call), platform="cpu")
    return library
