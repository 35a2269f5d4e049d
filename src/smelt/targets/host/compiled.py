"""Programs compiled for this machine: what may be, when, and what stands in until they are there.

A program is planned again for the native engine, for each set of input shapes that is called.
Whatever the engine refuses, or this machine cannot compile, has no compiled form: NumPy runs it.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.native.call_blas import call_blas
from smelt.native.fuse_elementwise import fuse_elementwise
from smelt.native.in_process import FUNCTION, source_of
from smelt.native.kernels.blas import BIND
from smelt.native.schedule import planned
from smelt.program.instruction import Program
from smelt.program.schedule import IN_CACHE
from smelt.program.specialize import specialize
from smelt.runtime.jit import blas
from smelt.runtime.jit.build import built
from smelt.runtime.jit.caller import Caller, Entry, Port, caller

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

KEPT = 16
"""Sets of shapes that one program is compiled for at most: a loaded library stays."""

WORTH = 0.5
"""Seconds that NumPy must have spent on a set of shapes before it is compiled in between."""

SHORT = 20_000
"""Bytes and multiplications up to which a call is over in a few microseconds."""


class Compiled:
    """The compiled forms of ``program``, which is as ``lower`` made it.

    ``waits``: whether the first call waits for the compiler; else it runs in the background, after
    ``WORTH`` seconds. ``why`` says what went wrong, if something did.
    """

    def __init__(self, program: Program, *, waits: bool) -> None:
        self.program = program
        self.waits = waits
        self.why = ""
        self._callers: dict[Shapes, Caller | None] = {}
        self._spent: dict[Shapes, float] = {}
        self._lock = threading.Lock()

    def caller(self, shapes: Shapes) -> Caller | None:
        """What calls the program at ``shapes``; None as long as NumPy has to.

        Raises UsageError E670 if the shapes do not fit the inputs.
        """
        if shapes in self._callers or not self.waits:
            return self._callers.get(shapes)
        static = specialize(self.program, shapes)
        with self._lock:
            if shapes not in self._callers and len(self._callers) < KEPT:
                self._callers[shapes] = self._compile(static)
        return self._callers.get(shapes)

    def ran(self, shapes: Shapes, seconds: float) -> None:
        """NumPy took ``seconds`` for a call: compile in the background what is worth it."""
        if self.waits or shapes in self._callers:
            return
        with self._lock:
            if shapes not in self._spent and len(self._spent) >= 4 * KEPT:
                return
            self._spent[shapes] = self._spent.get(shapes, 0.0) + seconds
            if self._spent[shapes] < WORTH or len(self._callers) >= KEPT:
                return
            self._callers[shapes] = None
        threading.Thread(target=self._compile_later, args=(shapes,), daemon=True).start()

    def _compile_later(self, shapes: Shapes) -> None:
        self._callers[shapes] = self._compile(specialize(self.program, shapes))

    def _compile(self, static: Program) -> Caller | None:
        try:
            return compile_program(static.copy())
        except (Unsupported, ErrorList) as error:
            self.why = str(error)
        except (SmeltError, OSError) as error:
            self.why = str(error)
            warnings.warn(
                f"a program could not be compiled, so NumPy runs it: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        return None


def compile_program(program: Program) -> Caller:
    """What calls a static ``program``, which is used up, compiled.

    Raises Unsupported, or an ErrorList of it, for what the engine lacks; UsageError E661 without a
    compiler, and what ``Toolchain.compile`` does.
    """
    inputs, outputs = _ports(program, program.inputs), _ports(program, program.outputs)
    table = blas.table()
    ordered = planned(program, "host", (call_blas,) if table else (), (fuse_elementwise,), IN_CACHE)
    source = source_of(ordered)
    with built(source.text) as path:
        library = ctypes.CDLL(str(path))
    if BIND in source.text:
        library[BIND](table)
    run = ctypes.cast(library[FUNCTION], ctypes.c_void_p).value
    assert run is not None
    return caller(
        Entry(
            run, library, inputs, outputs, source.weights, source.memory_bytes, _is_short(ordered)
        )
    )


def _ports(program: Program, slots: Sequence[int]) -> list[Port]:
    described = (program.slots[slot] for slot in slots)
    return [
        Port(np.dtype(slot.dtype.numpy()), tuple(int(str(dim)) for dim in slot.shape))
        for slot in described
    ]


def _is_short(program: Program) -> bool:
    if any(step.bodies for step in program.instructions):
        return False
    return sum(slot.nbytes for slot in program.slots) < SHORT
