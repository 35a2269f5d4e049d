"""One compiled program for many shapes: the sizes of the inputs are arguments of each run.

A program for one set of shapes runs faster, but compiling it takes seconds. A server that gets
texts of 200 lengths runs all of them by one program of open sizes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported, UsageError
from smelt.ir.bounds import note_bounds
from smelt.ir.cloning import clone_model
from smelt.ir.collector import paused_collector
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.solved_dims import solve
from smelt.native import schedule
from smelt.native.emit.in_process import BIND_THREADS, FUNCTION, Source, source_of
from smelt.program.instruction import Program
from smelt.runtime.interface import Interface, interface_of
from smelt.runtime.jit.build import library_key
from smelt.runtime.jit.library_call import bind
from smelt.runtime.jit.open_caller import Fitting, OpenCaller, Shapes
from smelt.runtime.run_bounds import RunBounds, shape_in, sizes_of
from smelt.targets.host.call_ports import has_packed_ports

HEADROOM = 2
"""A bound is the first power of two that is at least this many times the largest size so far."""

LOOK_UP_SECONDS = 0.1
"""A library that is not loaded after this time is being compiled."""

MOST_BYTES = 1 << 30
"""The most bytes of workspace of a program of open sizes."""


@dataclass(frozen=True)
class InterfaceSizes:
    """The sizes of runs of a program with the inputs and outputs of ``interface``.

    ``bounds`` has the bounds of each symbol, in the order in which the compiled function takes
    them.
    """

    interface: Interface
    bounds: RunBounds

    def __call__(self, shapes: Shapes) -> Fitting | None:
        """Return the sizes, and the shapes of the results, for inputs of ``shapes``.

        None if the shapes do not fit the inputs or exceed the bounds.
        """
        try:
            arrays = [np.broadcast_to(np.empty((), np.uint8), shape) for shape in shapes]
            sizes = sizes_of(self.interface, arrays, self.bounds)
            results = [shape_in(port, sizes) for port in self.interface.outputs]
            return [sizes[name] for name in self.bounds], results
        except (UsageError, ValueError, KeyError):
            return None  # the run by NumPy raises the error, if it is one


@dataclass(frozen=True)
class _Written:
    """A program for sizes within ``bounds``, in C; ``library`` is set once a thread compiles it."""

    bounds: dict[str, tuple[int, int]]
    model: ir.Model
    program: Program
    source: Source
    library: Future[ctypes.CDLL] | None = None


class OpenSizes:
    """Compiles ``model`` for all sizes up to bounds, which grow with the shapes that are called.

    ``_largest`` has the largest size of each symbol so far; ``_known`` the symbols whose largest
    size the caller knows; ``_empty`` those that may be 0; ``_compiled_for`` the bounds of the last
    program; ``_begun`` the program that ``begin`` wrote.
    """

    def __init__(self, model: ir.Model, threads: int) -> None:
        """Copy the model; nothing is inferred yet."""
        self._copy = clone_model(model)
        self._threads = threads
        self._largest: dict[str, int] = {}
        self._known: set[str] = set()
        self._empty: set[str] = set()
        self._compiled_for: dict[str, tuple[int, int]] = {}
        self._begun: _Written | None = None

    @cached_property
    def _model(self) -> ir.Model:
        """The copy of the model; inference gives unnamed dims a symbol, on first use."""
        ShapeInference(self._copy).infer_model()
        return self._copy

    @property
    def is_due(self) -> bool:
        """True if shapes beyond the bounds of the last program were noted."""
        return self._bounds() != self._compiled_for

    def _bounds(self) -> dict[str, tuple[int, int]]:
        """Return the least and the greatest size that the next program takes, by symbol."""
        return {
            name: (
                int(name not in self._empty),
                _bound(size if name in self._known else HEADROOM * size),
            )
            for name, size in self._largest.items()
        }

    def note(self, shapes: Shapes, *, known: bool = False) -> None:
        """Raise the bounds of the next program so that it takes inputs of ``shapes``.

        ``known``: no larger sizes follow, and a size of 0 becomes a lower bound; otherwise NumPy
        runs that.
        """
        dims = [dim for port in interface_of(self._model).inputs for dim in port.shape or ()]
        lengths = [size for shape in shapes for size in shape]
        if len(dims) != len(lengths):
            return
        for name, size in solve(dims, lengths).items():
            self._largest[name] = max(size, self._largest.get(name, 1))
            if known:
                self._known.add(name)
            if known and size == 0:
                self._empty.add(name)

    def compile(self, library_of: Callable[[Source], ctypes.CDLL | None]) -> OpenCaller | None:
        """Return the program for all sizes up to the bounds; None if there is none.

        There is none if it would need too much memory, has data-dependent sizes or packed 4-bit
        inputs or outputs, or if ``library_of``, which compiles C, returns None. Raises Unsupported
        or an ErrorList for operators without a kernel for open sizes, and the errors of
        ``library_of``.
        """
        begun, self._begun = self._begun, None
        self._compiled_for = self._bounds()
        is_begun = begun is not None and begun.bounds == self._compiled_for
        written = begun if is_begun else self._write()
        if written is None:
            return None
        model, program, source = written.model, written.program, written.source
        begun_library = written.library
        library = library_of(source) if begun_library is None else begun_library.result()
        if library is None:
            return None
        binds = BIND_THREADS if source.has_parts else ""
        bind(library, "", binds, self._threads)
        sizes = program.input_sizes
        bounds = {each.symbol or each.name: (each.size.low, each.size.high) for each in sizes}
        fit = InterfaceSizes(interface_of(model), bounds)
        dtypes = [_dtype(port.dtype) for port in fit.interface.outputs]
        return OpenCaller(
            fit,
            dtypes,
            library,
            FUNCTION,
            source.weights,
            source.memory_bytes,
            library_key(source.text),
            binds,
        )

    def begin(self, library_of: Callable[[str], ctypes.CDLL]) -> bool:
        """Write the C of the next program, and let a thread compile it by ``library_of``.

        ``compile`` then waits for it, and raises what stopped it. True if that takes longer than
        to find the library in the cache.
        """
        if not self.is_due:
            return False
        try:
            written = self._write()
        except (Unsupported, ErrorList):  # ``compile`` raises it
            return False
        if written is None:
            return False
        thread = ThreadPoolExecutor(1, "smelt-compiles")
        future = thread.submit(library_of, written.source.text)
        thread.shutdown(wait=False)
        self._begun = replace(written, library=future)
        return not wait([future], LOOK_UP_SECONDS).done

    def _write(self) -> _Written | None:
        """Return the next program in C; None if there is none, for the reasons of ``compile``."""
        with paused_collector():
            model, bounds = clone_model(self._model), self._bounds()
            note_bounds(model, bounds)
            program = schedule.ordered(model, "host")
            if has_packed_ports(program) or program.data_dependent_sizes or program.returned_sizes:
                return None
            source = source_of(program, self._threads)
        if source.memory_bytes > MOST_BYTES:
            return None
        return _Written(bounds, model, program, source)


def _bound(size: int) -> int:
    """Return the first power of two that is at least ``size``."""
    return 1 << (size - 1).bit_length()


def _dtype(dtype: ir.DataType | None) -> np.dtype:
    """Return the NumPy type of an output."""
    assert dtype is not None
    return np.dtype(dtype.numpy())
