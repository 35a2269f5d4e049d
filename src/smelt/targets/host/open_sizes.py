"""One compiled program for many shapes: the sizes of the inputs are arguments of each run.

A program for one set of shapes runs faster, but compiling it takes seconds. A server that gets
texts of 200 lengths runs all of them by one program of open sizes.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.bounds import note_bounds
from smelt.ir.cloning import clone_model
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.solved_dims import solve
from smelt.native import schedule
from smelt.native.emit.in_process import BIND_THREADS, FUNCTION, Source, source_of
from smelt.runtime.interface import Interface, interface_of
from smelt.runtime.jit.caller import ALIGNMENT, addresses
from smelt.runtime.jit.library_call import bind
from smelt.runtime.run_bounds import RunBounds, shape_in, sizes_of
from smelt.targets.host.call_ports import has_packed_ports

Shapes = tuple[tuple[int, ...], ...]

HEADROOM = 2
"""A bound is the first power of two that is at least this many times the largest size so far."""

MOST_BYTES = 1 << 30
"""The most bytes of workspace of a program of open sizes."""

KEPT_SHAPES = 1024
"""The most sets of shapes whose sizes and result shapes are remembered."""


@dataclass
class OpenCaller:
    """Calls a compiled program of open sizes.

    ``interface`` describes its inputs and outputs. ``order`` has the symbols of its sizes, in the
    order in which the compiled function takes them; ``bounds`` has the bounds of each symbol.
    ``_fitting`` remembers the results of ``_sizes``. Calls from several threads run concurrently,
    each with its own workspace.
    """

    interface: Interface
    order: Sequence[str]
    bounds: RunBounds
    run: Callable[..., int]
    library: ctypes.CDLL
    source: Source
    _fitting: OrderedDict[Shapes, tuple[np.ndarray, list[tuple[int, ...]]] | None] = field(
        default_factory=OrderedDict
    )
    _workspaces: list[np.ndarray] = field(default_factory=list)

    @cached_property
    def _weights(self) -> ctypes.Array[ctypes.c_void_p]:
        """The addresses of the weights."""
        return addresses(self.source.weights)

    def takes(self, shapes: Shapes) -> bool:
        """True if inputs of ``shapes`` are within the bounds."""
        return self._sizes(shapes) is not None

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Run on arrays that have the inputs' element types; None if the run fails.

        Arrays that are not row-major or aligned are copied first.
        """
        fitting = self._sizes(tuple(array.shape for array in arrays))
        if fitting is None:
            return None
        sizes, shapes = fitting
        aligned = [np.require(array, requirements=("C", "A")) for array in arrays]
        ports = zip(shapes, self.interface.outputs, strict=True)
        results = tuple(np.empty(shape, _dtype(port.dtype)) for shape, port in ports)
        workspace = self._workspaces.pop() if self._workspaces else self._new_workspace()
        try:
            status = self.run(
                addresses([*aligned, sizes]),
                addresses(results),
                workspace.ctypes.data + -workspace.ctypes.data % ALIGNMENT,
                self._weights,
            )
        finally:
            self._workspaces.append(workspace)
        return None if status else results

    def _new_workspace(self) -> np.ndarray:
        """Return new memory for one run; the system provides only the pages that a run touches."""
        return np.empty(self.source.memory_bytes + ALIGNMENT, np.uint8)

    def _sizes(self, shapes: Shapes) -> tuple[np.ndarray, list[tuple[int, ...]]] | None:
        """Return the sizes by ``order``, and the shapes of the results, for inputs of ``shapes``.

        None if the shapes do not fit the inputs or exceed the bounds.
        """
        if shapes in self._fitting:
            return self._fitting[shapes]
        fitting = None
        try:
            arrays = [np.broadcast_to(np.empty((), np.uint8), shape) for shape in shapes]
            sizes = sizes_of(self.interface, arrays, self.bounds)
            results = [shape_in(port, sizes) for port in self.interface.outputs]
            fitting = np.array([sizes[name] for name in self.order], np.intp), results
        except (UsageError, ValueError, KeyError):
            pass  # the run by NumPy raises the error, if it is one
        self._fitting[shapes] = fitting
        if len(self._fitting) > KEPT_SHAPES:
            self._fitting.popitem(last=False)
        return fitting


class OpenSizes:
    """Compiles ``model`` for all sizes up to bounds, which grow with the shapes that are called.

    ``_largest`` has the largest size of each symbol so far; ``_empty`` the symbols that were 0;
    ``_compiled_for`` the bounds of the last program.
    """

    def __init__(self, model: ir.Model, threads: int) -> None:
        """Copy the model; nothing is inferred yet."""
        self._copy = clone_model(model)
        self._threads = threads
        self._largest: dict[str, int] = {}
        self._empty: set[str] = set()
        self._compiled_for: dict[str, tuple[int, int]] = {}

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
            name: (int(name not in self._empty), _bound(size))
            for name, size in self._largest.items()
        }

    def note(self, shapes: Shapes, *, from_zero: bool = False) -> None:
        """Raise the bounds of the next program so that it takes inputs of ``shapes``.

        ``from_zero``: a size of 0 in ``shapes`` becomes a lower bound; otherwise NumPy runs it.
        """
        dims = [dim for port in interface_of(self._model).inputs for dim in port.shape or ()]
        lengths = [size for shape in shapes for size in shape]
        if len(dims) != len(lengths):
            return
        for name, size in solve(dims, lengths).items():
            self._largest[name] = max(size, self._largest.get(name, 1))
            if size == 0 and from_zero:
                self._empty.add(name)

    def compile(self, library_of: Callable[[Source], ctypes.CDLL | None]) -> OpenCaller | None:
        """Return the program for all sizes up to the bounds; None if there is none.

        There is none if it would need too much memory, has data-dependent sizes or packed 4-bit
        inputs or outputs, or if ``library_of``, which compiles C, returns None. Raises Unsupported
        or an ErrorList for operators without a kernel for open sizes, and the errors of
        ``library_of``.
        """
        model = clone_model(self._model)
        self._compiled_for = self._bounds()
        note_bounds(model, self._compiled_for)
        program = schedule.ordered(model, "host")
        if has_packed_ports(program) or program.data_dependent_sizes or program.returned_sizes:
            return None
        source = source_of(program, self._threads)
        if source.memory_bytes > MOST_BYTES:
            return None
        library = library_of(source)
        if library is None:
            return None
        bind(library, "", BIND_THREADS if source.has_parts else "", self._threads)
        run = library[FUNCTION]
        run.argtypes = (ctypes.c_void_p,) * 4
        sizes = program.input_sizes
        bounds = {each.symbol or each.name: (each.size.low, each.size.high) for each in sizes}
        return OpenCaller(interface_of(model), list(bounds), bounds, run, library, source)


def _bound(size: int) -> int:
    """Return the bound of a symbol whose largest size so far is ``size``: 64 for 17 to 32."""
    return 1 << (HEADROOM * size - 1).bit_length()


def _dtype(dtype: ir.DataType | None) -> np.dtype:
    """Return the NumPy type of an output."""
    assert dtype is not None
    return np.dtype(dtype.numpy())
