"""Compile a static program for this machine, or load its library from the cache."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import TypeAlias

from smelt.errors import SmeltError
from smelt.native.emit.in_process import Source, source_of
from smelt.native.kernels.blas import BIND
from smelt.native.rewrite.call_blas import call_blas
from smelt.native.rewrite.call_lapack import call_lapack
from smelt.native.rewrite.choose_skinny_dot import choose_skinny_dot
from smelt.native.rewrite.convolve_packed import convolve_packed
from smelt.native.rewrite.factor_lane_batched import factor_lane_batched
from smelt.native.rewrite.fuse_elementwise import fuse_elementwise
from smelt.native.rewrite.fuse_reductions import fuse_reductions
from smelt.native.rewrite.read_slices import read_slices
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.program.schedule import IN_CACHE
from smelt.runtime.jit import blas
from smelt.runtime.jit.background import background
from smelt.runtime.jit.build import built, is_cached, library_key
from smelt.runtime.jit.cache import Cache
from smelt.runtime.jit.caller import Caller, extension
from smelt.runtime.jit.library_call import LibraryCall
from smelt.runtime.jit.pool import parallel_for
from smelt.targets.host.call_ports import has_packed_ports, packing
from smelt.targets.host.compile_cache import CachedLibrary, note_name, read_note, write_note

Keep: TypeAlias = Callable[[LibraryCall, ctypes.CDLL], None]

MOST_BYTES_OF_SHORT_CALL = 20_000
"""A program whose values have fewer bytes takes a few microseconds a call."""

FUSIONS = (fuse_elementwise, read_slices, fuse_reductions)
"""Passes that fuse instructions into one loop."""


def has_note(program: Program, threads: int = 1) -> bool:
    """True if a note says that a static ``program`` was compiled before."""
    try:
        return Cache().has_note(note_name(program, threads))
    except (SmeltError, OSError):
        return False


def compile_program(
    program: Program,
    waits: bool = True,
    only_cached: bool = False,
    threads: int = 1,
    known: CachedLibrary | None = None,
    keep: Keep | None = None,
) -> Caller | None:
    """Return a caller of the compiled static ``program``; None if the process ends meanwhile.

    ``waits``: a call waits for the compiler. ``only_cached``: return None unless the library is
    cached. ``threads``: the number of shards of costly steps. ``known``: the note of the program,
    if the caller has read it. ``keep`` gets the library and how to call it.

    Raises Unsupported or an ErrorList for operators that the native engine lacks, UsageError E661
    without a compiler, and the errors of ``Toolchain.compile``.
    """
    known = read_note(program, threads) if known is None else known
    if known is not None and not (known.calls_blas and blas.table() is None):
        library_path = Cache().find(known.key)
        if library_path is not None:
            return _caller(program, known, ctypes.CDLL(str(library_path)), threads, keep)
    libraries = (call_blas, call_lapack) if blas.table() else ()
    choices = (convolve_packed, choose_skinny_dot, factor_lane_batched, *libraries)
    ordered = planned(program.copy(), "host", choices, FUSIONS, IN_CACHE)
    source = source_of(ordered, threads)
    if only_cached and not is_cached(source.text):
        return None
    in_foreground = waits or only_cached
    library = library_of(source.text) if in_foreground else library_in_background(source)
    if library is None:
        return None
    cached_library = CachedLibrary(
        library_key(source.text),
        source.memory_bytes,
        _is_short(ordered),
        BIND in source.text,
        source.has_parts,
        source.weights,
    )
    compiled_caller = _caller(program, cached_library, library, threads, keep)
    with contextlib.suppress(OSError):  # without a note, a later process compiles later
        write_note(program, threads, cached_library)
    return compiled_caller


def library_in_background(source: Source) -> ctypes.CDLL | None:
    """Compile ``source`` in this background thread; None if the process is ending.

    Also loads the extension module and the thread pool, so that no call waits for them.
    """
    if not background().building():
        return None
    try:
        library = library_of(source.text)
        extension()
        if source.has_parts:
            parallel_for()
        return library
    finally:
        background().built()


def _caller(
    program: Program,
    cached_library: CachedLibrary,
    library: ctypes.CDLL,
    threads: int,
    keep: Keep | None,
) -> Caller:
    """Return a caller of ``library``.

    ``keep`` gets its ``LibraryCall``, unless 4-bit arrays are packed around the call: whoever keeps
    it calls the library without that.
    """
    call = cached_library.call_of(program)
    compiled_caller = call.caller(library, threads)
    if has_packed_ports(program):
        return packing(program, compiled_caller)
    if keep is not None:
        keep(call, library)
    return compiled_caller


def library_of(text: str) -> ctypes.CDLL:
    """Compile the C ``text``, unless the cache has it, and load the library."""
    with built(text) as path:
        return ctypes.CDLL(str(path))


def _is_short(program: Program) -> bool:
    """True if a call takes a few microseconds, so that releasing the GIL does not pay."""
    if any(step.bodies for step in program.instructions):
        return False
    return sum(slot.nbytes for slot in program.slots) < MOST_BYTES_OF_SHORT_CALL
