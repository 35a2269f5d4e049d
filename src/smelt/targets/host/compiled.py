"""Compile programs for this machine; NumPy runs them until the compiled form is ready.

The native engine plans a program again for each set of input shapes that is called. NumPy keeps
running the programs that the engine, or this machine's compiler, refuses.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

from smelt.errors import ErrorList, SmeltError, Unsupported
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
from smelt.program.specialize import is_static, specialize
from smelt.runtime.jit import blas
from smelt.runtime.jit.background import background
from smelt.runtime.jit.build import built, is_cached, library_key
from smelt.runtime.jit.cache import Cache
from smelt.runtime.jit.caller import Caller, extension
from smelt.runtime.jit.library_call import LibraryCall
from smelt.runtime.jit.pool import parallel_for
from smelt.targets.host.call_ports import has_packed_ports, packing
from smelt.targets.host.compile_cache import CachedLibrary, note_name, read_note, write_note

Shapes: TypeAlias = tuple[tuple[int, ...], ...]
Keep: TypeAlias = Callable[[LibraryCall], None]

MOST_CALLERS = 16
"""The most sets of shapes that a program is compiled for; a loaded library stays loaded."""

SEEN = 64
"""The most called sets of shapes that are remembered."""

SHORT = 20_000
"""The most bytes and multiplications of a call that takes a few microseconds."""


class Compiled:
    """The compiled forms of ``program``, as ``lower`` returned it.

    ``waits``: the first call waits for the compiler. Otherwise cached libraries are loaded and
    others compiled in the background: a static program after its first call, a set of shapes after
    its second, since a growing cache has new shapes each call. ``why``: the last error, or empty.
    ``keep`` receives how to call each library, unless arrays are converted around the call.
    """

    def __init__(self, program: Program, *, waits: bool, threads: int = 1) -> None:
        """Start without compiled forms.

        ``_callers`` has the compiled form of each set of input shapes, None if the compile failed;
        ``_called`` the shapes that NumPy ran, oldest first.
        """
        self.program = program
        self.waits = waits
        self.threads = threads
        self.why = ""
        self.keep: Keep | None = None
        self._callers: dict[Shapes, Caller | None] = {}
        self._called: OrderedDict[Shapes, bool] = OrderedDict()
        self._warning = self._said = ""
        self._begin()

    def _begin(self) -> None:
        """Reset the pending compiles; after a fork, those of the parent stay with the parent."""
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._pending: list[Shapes] = []

    @cached_property
    def cached_library(self) -> CachedLibrary | None:
        """The cached form of a static program from an earlier process, or None."""
        return read_note(self.program, self.threads) if is_static(self.program) else None

    def _at(self, shapes: Shapes) -> Program:
        """Return the program for inputs of ``shapes``; raises UsageError E670 if they do
        not fit.
        """
        declared_shapes = tuple(self.program.slots[slot].shape for slot in self.program.inputs)
        if shapes == declared_shapes and is_static(self.program):
            return self.program
        return specialize(self.program, shapes)

    def _pending_lock(self) -> threading.Condition:
        """Return the lock of the pending compiles, new ones after a fork."""
        if self._process != os.getpid():
            self._begin()
        return self._changed

    def caller(self, shapes: Shapes) -> Caller | None:
        """Return the compiled caller at ``shapes``; None while NumPy must run the call.

        Raises UsageError E670 if the shapes do not fit the inputs.
        """
        if self._warning:
            warning, self._warning = self._warning, ""
            warnings.warn(warning, RuntimeWarning, stacklevel=4)
        if shapes in self._callers or (not self.waits and shapes in self._called):
            return self._callers.get(shapes)
        static = self._at(shapes)
        with self._pending_lock():
            if shapes not in self._callers and len(self._callers) < MOST_CALLERS:
                if self.waits:
                    self._callers[shapes] = self._compile(static)
                elif has_note(static, self.threads):
                    cached_caller = self._compile(static, only_cached=True)
                    if cached_caller is not None:
                        self._callers[shapes] = cached_caller
        return self._callers.get(shapes)

    def ran(self, shapes: Shapes) -> None:
        """Record that NumPy ran a call at ``shapes``, and submit a compile if it is due."""
        if self.waits or shapes in self._callers:
            return
        with self._pending_lock():
            is_second_call = shapes in self._called or is_static(self.program)
            self._called[shapes] = True
            if len(self._called) > SEEN:
                self._called.popitem(last=False)
            if is_second_call:
                self._submit(shapes)

    def ready(self, timeout: float | None) -> bool:
        """Compile what was called, or a static program; True if done within ``timeout`` seconds."""
        if is_static(self.program):
            shapes = tuple(self.program.slots[slot].sizes for slot in self.program.inputs)
            if self.caller(shapes) is None:
                self._called.setdefault(shapes, True)
        with self._pending_lock():
            for each in () if self.waits else tuple(self._called):
                self._submit(each)
            return self._changed.wait_for(lambda: not self._pending, timeout)

    def _submit(self, shapes: Shapes) -> None:
        """Submit a compile at ``shapes``, unless it is known or there are too many."""
        known = shapes in self._callers or shapes in self._pending
        if not known and len(self._callers) + len(self._pending) < MOST_CALLERS:
            self._pending.append(shapes)
            background().submit(self._compile_next)

    def _compile_next(self) -> None:
        """Compile the oldest pending shapes, and wake the threads that wait for them."""
        shapes = self._pending[0]
        compiled_caller = None
        try:
            compiled_caller = self._compile(self._at(shapes))
        finally:
            with self._changed:
                self._callers[shapes] = compiled_caller
                self._pending.remove(shapes)
                self._changed.notify_all()

    def _compile(self, static: Program, *, only_cached: bool = False) -> Caller | None:
        """Compile ``static``; None, with the reason in ``why``, if that fails."""
        try:
            cached = self.cached_library if static is self.program else None
            return compile_program(static, self.waits, only_cached, self.threads, cached, self.keep)
        except (Unsupported, ErrorList) as error:
            self.why = str(error)
        except (SmeltError, OSError) as error:
            self.why = str(error)
            self._warn(error)
        return None

    def _warn(self, error: SmeltError | OSError) -> None:
        """Let the next call warn once; if calls do not wait, a missing compiler
        gives no warning."""
        without = isinstance(error, SmeltError) and error.code == "E661"
        if str(error) == self._said:
            return
        self._said = str(error)
        if self.waits:
            warnings.warn(FAILED.format(error), RuntimeWarning, stacklevel=6)
        elif not without and not background().ended:
            self._warning = FAILED.format(error)


GROUPS = (fuse_elementwise, read_slices, fuse_reductions)
"""Passes that fuse instructions into one loop."""

FAILED = "a program could not be compiled, so NumPy runs it: {}"


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
    cached. ``threads``: the number of shards of costly steps. ``known``: the cached form, if it was
    looked up. ``keep`` is that of ``Compiled``. Raises Unsupported or an ErrorList for what the
    engine lacks, UsageError E661 without a compiler, and the errors of ``Toolchain.compile``.
    """
    known = read_note(program, threads) if known is None else known
    if known is not None and not (known.calls_blas and blas.table() is None):
        library_path = Cache().find(known.key)
        if library_path is not None:
            return _caller(program, known, ctypes.CDLL(str(library_path)), threads, keep)
    libraries = (call_blas, call_lapack) if blas.table() else ()
    choices = (convolve_packed, choose_skinny_dot, factor_lane_batched, *libraries)
    ordered = planned(program.copy(), "host", choices, GROUPS, IN_CACHE)
    source = source_of(ordered, threads)
    if only_cached and not is_cached(source.text):
        return None
    in_foreground = waits or only_cached
    library = _library(source.text) if in_foreground else _library_in_background(source)
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


def _library_in_background(source: Source) -> ctypes.CDLL | None:
    """Return the library of ``source``, compiled in the thread that calls; None if the process
    ends.

    Also loads the extension module and the thread pool, so that no call waits for them.
    """
    if not background().building():
        return None
    try:
        library = _library(source.text)
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
    """Return a caller of ``library``; ``keep`` learns how to call it, if callers need no more."""
    call = cached_library.call_of(program)
    compiled_caller = call.caller(library, threads)
    if has_packed_ports(program):
        return packing(program, compiled_caller)
    if keep is not None:
        keep(call)
    return compiled_caller


def _library(text: str) -> ctypes.CDLL:
    """Return the library that the C ``text`` is compiled to."""
    with built(text) as path:
        return ctypes.CDLL(str(path))


def _is_short(program: Program) -> bool:
    """True if a call takes a few microseconds, in which releasing the GIL does not pay."""
    if any(step.bodies for step in program.instructions):
        return False
    return sum(slot.nbytes for slot in program.slots) < SHORT
