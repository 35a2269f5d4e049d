"""Compile programs for this machine; NumPy runs them until the compiled form is ready.

The first few sets of input shapes that are called get a compiled program each. One program of open
sizes then runs all other shapes. NumPy keeps running the programs that the native engine, or this
machine's C compiler, refuses.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property

from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.native.emit.in_process import Source
from smelt.program.instruction import Program
from smelt.program.specialize import is_static, specialize
from smelt.runtime.jit import blas
from smelt.runtime.jit.background import background
from smelt.runtime.jit.caller import Caller
from smelt.runtime.jit.library_call import LibraryCall
from smelt.runtime.jit.open_caller import OpenCaller, Shapes
from smelt.targets.host.compile_cache import CachedLibrary, read_note
from smelt.targets.host.open_sizes import OpenSizes
from smelt.targets.host.static_programs import (
    Keep,
    compile_program,
    has_note,
    library_in_background,
    library_of,
)

FEW = 4
"""The sets of shapes that are compiled one by one before a program of open sizes is compiled."""

MOST_CALLERS = 16
"""The most sets of shapes that are compiled one by one if there is no program of open sizes."""

MOST_REMEMBERED = 64
"""The most sets of shapes that NumPy ran and that are remembered, to find the second call."""


class Compiled:
    """The compiled forms of ``program``, as ``lower`` returned it.

    ``waits``: the first call waits for the compiler. Otherwise cached libraries are loaded, and
    others are compiled in the background. A static program is compiled after its first call. A set
    of shapes is compiled after its second call: a decoder whose cache grows has new shapes in every
    call, which never return.

    ``open_sizes`` compiles the program of open sizes, which is then ``open_caller``; None for a
    static program.
    ``why``: the message of the last compile that failed, or empty.
    ``keep``, if set, gets the ``LibraryCall`` of each library that takes the caller's arrays as
    they are. ``note``, if set, gets what is known once a static program is compiled: the bytes
    that it works in, and the library of BLAS and LAPACK that it calls.
    """

    def __init__(
        self,
        program: Program,
        *,
        waits: bool,
        threads: int = 1,
        open_sizes: OpenSizes | None = None,
    ) -> None:
        """Start without compiled forms.

        ``_callers`` has the compiled form of each set of input shapes, None if the compile failed.
        ``_called`` has the shapes that NumPy ran, oldest first. ``_warning`` is the message that
        the next call warns about; ``_last_warned`` the last such message.
        """
        self.program = program
        self.waits = waits
        self.threads = threads
        self.why = ""
        self.keep: Callable[[LibraryCall], None] | None = None
        self.note: Callable[[Mapping[str, int | str]], None] | None = None
        self.open_sizes = open_sizes
        self.open_caller: OpenCaller | None = None
        self._callers: dict[Shapes, Caller | None] = {}
        self._called: OrderedDict[Shapes, bool] = OrderedDict()
        self._warning = self._last_warned = ""
        self._begin()

    def _begin(self) -> None:
        """Start with no pending compiles; a forked child drops those that its parent runs."""
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._pending: list[Shapes | None] = []

    @cached_property
    def cached_library(self) -> CachedLibrary | None:
        """The cached form of a static program from an earlier process, or None."""
        return read_note(self.program, self.threads) if is_static(self.program) else None

    def at(self, shapes: Shapes) -> Program:
        """Return the static program for inputs of ``shapes``; raises UsageError E670 if the shapes
        do not fit the inputs.
        """
        declared_shapes = tuple(self.program.slots[slot].shape for slot in self.program.inputs)
        if shapes == declared_shapes and is_static(self.program):
            return self.program
        return specialize(self.program, shapes)

    def _pending_lock(self) -> threading.Condition:
        """Return the lock of the pending compiles; a forked child gets a lock of its own."""
        if self._process != os.getpid():
            self._begin()
        return self._changed

    def caller(self, shapes: Shapes) -> Caller | None:
        """Return the compiled caller at ``shapes``; None while NumPy must run the call.

        If calls wait, it is compiled here: for open sizes after ``FEW`` sets of shapes, else for
        these shapes. If they do not wait, only a cached library is loaded.
        Raises UsageError E670 if the shapes do not fit the inputs.
        """
        if self._warning:
            warning, self._warning = self._warning, ""
            warnings.warn(warning, RuntimeWarning, stacklevel=4)
        caller = self._callers.get(shapes) or self._open_at(shapes)
        has_failed = caller is None and shapes in self._callers
        has_no_library = not self.waits and shapes in self._called  # its first call looked
        if caller or has_failed or has_no_library:
            return caller
        static = self.at(shapes)
        with self._pending_lock():
            if self.waits and len(self._callers) >= FEW and self.open_sizes is not None:
                self.open_sizes.note(shapes)
                if self.open_sizes.is_due:
                    self._compile_open()
                caller = self._open_at(shapes)
            if caller is None and shapes not in self._callers and self._may_specialize():
                if self.waits:
                    self._callers[shapes] = self._compile(static)
                elif has_note(static, self.threads):
                    cached_caller = self._compile(static, only_cached=True)
                    if cached_caller is not None:
                        self._callers[shapes] = cached_caller
        return caller or self._callers.get(shapes)

    def _open_at(self, shapes: Shapes) -> Caller | None:
        """Return the program of open sizes if ``shapes`` are within its bounds; else None."""
        program = self.open_caller
        return program if program is not None and program.takes(shapes) else None

    def _may_specialize(self) -> bool:
        """True if one more set of shapes may get a program of its own."""
        most = MOST_CALLERS if self.open_sizes is None else FEW
        return len(self._callers) + len(self._pending) < most

    def compile_for(self, *shapes: Shapes) -> bool:
        """Compile the program of open sizes, now, for all sizes up to those of ``shapes``.

        For a caller that knows the largest sizes ahead, such as those of a cache that grows. False
        if there is no such program; calls then run as they would have.
        """
        with self._pending_lock():
            for each in shapes:
                if self.open_sizes is not None:
                    self.open_sizes.note(each, known=True)
            if self.open_sizes is not None and self.open_sizes.is_due:
                self._compile_open()
            return self.open_caller is not None

    def ran(self, shapes: Shapes) -> None:
        """Record that NumPy ran a call at ``shapes``, and submit a compile if it is due."""
        if self.waits or self._callers.get(shapes):
            return
        with self._pending_lock():
            is_second_call = shapes in self._called or is_static(self.program)
            self._called[shapes] = True
            if len(self._called) > MOST_REMEMBERED:
                self._called.popitem(last=False)
            if self.open_sizes is not None:
                self.open_sizes.note(shapes)
                many = len(self._called.keys() | self._callers.keys()) > FEW
                if many and self.open_sizes.is_due:
                    self._submit(None)
            if is_second_call:
                self._submit(shapes)

    def ready(self, timeout: float | None) -> bool:
        """Wait until every set of shapes that was called is compiled; a static program needs no
        call. False if that takes longer than ``timeout`` seconds.
        """
        if is_static(self.program):
            shapes = tuple(self.program.slots[slot].sizes for slot in self.program.inputs)
            if self.caller(shapes) is None:
                self._called.setdefault(shapes, True)
        with self._pending_lock():
            for each in () if self.waits else tuple(self._called):
                self._submit(each)
            return self._changed.wait_for(lambda: not self._pending, timeout)

    @property
    def is_idle(self) -> bool:
        """True if no compile is pending."""
        return not self._pending

    def _submit(self, shapes: Shapes | None) -> None:
        """Compile in the background for ``shapes``, or for open sizes if that is None.

        Does nothing if that compile is pending or done, or if enough shapes have a program.
        """
        known = shapes in self._pending or (shapes is not None and shapes in self._callers)
        if not known and (shapes is None or self._may_specialize()):
            self._pending.append(shapes)
            background().submit(self._compile_next)

    def _compile_next(self) -> None:
        """Compile the oldest pending shapes, and wake the threads that wait for them."""
        shapes = self._pending[0]
        compiled_caller = None
        try:
            if shapes is None:
                self._compile_open()
            else:
                compiled_caller = self._compile(self.at(shapes))
        finally:
            with self._changed:
                if shapes is not None:
                    self._callers[shapes] = compiled_caller
                self._pending.remove(shapes)
                self._changed.notify_all()

    def _compile(self, static: Program, *, only_cached: bool = False) -> Caller | None:
        """Compile ``static``; None, with the reason in ``why``, if that fails."""
        try:
            cached = self.cached_library if static is self.program else None
            keep = self._keep_of(static)
            return compile_program(static, self.waits, only_cached, self.threads, cached, keep)
        except (Unsupported, ErrorList) as error:
            self.why = str(error)
        except (SmeltError, OSError) as error:
            self.why = str(error)
            self._warn(error)
        return None

    def _keep_of(self, static: Program) -> Keep:
        """Return the function that gets the ``LibraryCall`` of ``static`` once it is compiled."""

        def keep(call: LibraryCall, library: ctypes.CDLL) -> None:
            """Give ``note`` the facts of the program of declared sizes, and ``keep`` the call."""
            if self.note is not None and static is self.program:
                called = {"blas": blas.library_names()} if call.bind_blas else {}
                self.note({"arena_bytes": call.memory_bytes, **called})
            if self.keep is not None:
                self.keep(call)

        return keep

    def _compile_open(self) -> None:
        """Compile the program of open sizes for the shapes called so far.

        If that fails, ``open_sizes`` becomes None, and it is not tried again.
        """
        open_sizes, program = self.open_sizes, None
        if open_sizes is None:
            return
        try:
            program = open_sizes.compile(self._open_library)
        except (Unsupported, ErrorList) as error:
            self.why = str(error)
        except (SmeltError, OSError) as error:
            self.why = str(error)
            self._warn(error)
        if program is None:
            self.open_sizes = None
        else:
            self.open_caller = program

    def _open_library(self, source: Source) -> ctypes.CDLL | None:
        """Compile ``source``, a program of open sizes; None if the process ends meanwhile."""
        return library_of(source.text) if self.waits else library_in_background(source)

    def _warn(self, error: SmeltError | OSError) -> None:
        """Warn that a compile failed: at once if calls wait, else in the next call.

        The same message is given once. If calls do not wait, a machine without a compiler gives no
        warning, because the user did not ask for compiled code.
        """
        lacks_compiler = isinstance(error, SmeltError) and error.code == "E661"
        if str(error) == self._last_warned:
            return
        self._last_warned = str(error)
        if self.waits:
            warnings.warn(COMPILE_FAILED.format(error), RuntimeWarning, stacklevel=6)
        elif not lacks_compiler and not background().ended:
            self._warning = COMPILE_FAILED.format(error)


COMPILE_FAILED = "a program could not be compiled, so NumPy runs it: {}"
