"""Notes in the cache: which library a program was compiled to, and how to call it.

A process that finds the note of a program loads the library at once. Without it, the process would
plan the program and write its C first, which takes ten times as long as loading. The note's name is
a hash of everything that the library depends on: the program with its constants, the number of
threads, the compiler, the CPU, versions, and the size and time of this package's files.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

import numpy as np

from smelt.errors import SmeltError
from smelt.native.emit.in_process import BIND_THREADS, FUNCTION
from smelt.native.kernels.blas import BIND
from smelt.program.digest import digest
from smelt.program.instruction import Program
from smelt.runtime.jit.cache import Cache
from smelt.runtime.jit.cache_key import key_here
from smelt.runtime.jit.library_call import LibraryCall
from smelt.targets.host.call_ports import ports_of

MOST_CONSTANTS = 1 << 12
"""The most bytes of constants in a note; programs with more are planned again."""


@dataclass(frozen=True)
class CachedLibrary:
    """A library by its ``key`` in the cache, and how it is called; see ``caller.Entry``."""

    key: str
    memory_bytes: int
    is_short: bool
    calls_blas: bool
    has_parts: bool
    weights: tuple[np.ndarray, ...] = ()

    def call_of(self, program: Program) -> LibraryCall:
        """Return how to call the library that ``program`` became."""
        return LibraryCall(
            self.key,
            FUNCTION,
            BIND if self.calls_blas else "",
            BIND_THREADS if self.has_parts else "",
            ports_of(program, program.inputs),
            ports_of(program, program.outputs),
            self.weights,
            self.memory_bytes,
            self.is_short,
        )

    def to_text(self) -> str:
        """Return the note as a line of JSON."""
        weights = [(str(w.dtype), w.shape, w.tobytes().hex()) for w in self.weights]
        return json.dumps({**asdict(self), "weights": weights})

    @staticmethod
    def from_text(text: str) -> CachedLibrary:
        """Parse a note; raises ValueError, KeyError or TypeError for other text."""
        document = json.loads(text)
        weights = tuple(
            np.frombuffer(bytes.fromhex(data), dtype).reshape(shape)
            for dtype, shape, data in document.pop("weights")
        )
        return CachedLibrary(**document, weights=weights)


def note_name(program: Program, threads: int) -> str:
    """Return the name of the note of a static ``program``; raises E661 without a compiler."""
    constants = hashlib.sha256()
    if _is_identified_by_note(program):
        for slot in sorted(program.constants):
            constants.update(program.bytes_of(slot))
    return key_here("program", digest(program), constants.hexdigest(), str(threads))


def read_note(program: Program, threads: int) -> CachedLibrary | None:
    """Return the note of ``program``, or None; the library may no longer exist."""
    if not _is_identified_by_note(program):
        return None
    try:
        return CachedLibrary.from_text(Cache().note_text(note_name(program, threads)))
    except (SmeltError, OSError, ValueError, KeyError, TypeError):
        return None


def write_note(program: Program, threads: int, library: CachedLibrary) -> None:
    """Write the note of ``program``, an empty one if it is too large; raises OSError.

    ``read_note`` returns None for an empty note.
    """
    small = (
        _is_identified_by_note(program)
        and sum(each.nbytes for each in library.weights) <= MOST_CONSTANTS
    )
    Cache().note(note_name(program, threads), library.to_text() if small else "")


def _is_identified_by_note(program: Program) -> bool:
    """True if two different programs like ``program`` never share the name of a note.

    The name does not cover quantization parameters, layouts, subgraphs, or large constants, which
    would take long to hash.
    """
    if sum(array.nbytes for array in program.constants.values()) > MOST_CONSTANTS:
        return False
    if any(slot.quantization is not None or slot.layout is not None for slot in program.slots):
        return False
    return not any(step.bodies for step in program.instructions)
