"""Take the compiled program out of an artifact, so that another process calls it without the
compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.solved_dims import is_one_symbol
from smelt.runtime.interface import Dim, Port, interface_of
from smelt.runtime.jit.library_call import LibraryCall
from smelt.runtime.jit.open_caller import OpenCaller
from smelt.runtime.jit.size_terms import Terms
from smelt.runtime.jit.stored_program import StoredPort, StoredProgram
from smelt.runtime.run_bounds import RunBounds
from smelt.targets.host.open_sizes import InterfaceSizes

_CALL = re.compile(r"\w\s*\(")
"""Matches a function in the text of a dim."""


@dataclass(frozen=True)
class TakenProgram:
    """A compiled program, the cache key of its library, and the arrays that it reads."""

    program: StoredProgram
    key: str
    weights: Sequence[np.ndarray]


def taken_program(
    model: ir.Model, compiled: LibraryCall | OpenCaller | None
) -> TakenProgram | None:
    """Return the ``compiled`` program of ``model`` in a form that can be stored.

    None if NumPy runs the model, or if a size of the interface is not a polynomial of others.
    """
    bounds: RunBounds = {}
    if isinstance(compiled, LibraryCall):
        interface = interface_of(model)
        blas, threads = compiled.bind_blas, compiled.bind_threads
    elif compiled is not None and isinstance(compiled.fit, InterfaceSizes):
        interface, bounds = compiled.fit.interface, compiled.fit.bounds
        blas, threads = "", compiled.bind_threads
    else:
        return None
    sides = [_ports(interface.inputs), _ports(interface.outputs)]
    inputs, outputs = sides
    if inputs is None or outputs is None:
        return None
    program = StoredProgram(
        compiled.function, blas, threads, inputs, outputs, bounds, compiled.memory_bytes
    )
    return TakenProgram(program, compiled.key, compiled.weights)


def _ports(ports: Iterable[Port]) -> tuple[StoredPort, ...] | None:
    """Return the stored form of ``ports``; None if a program cannot take them as they are."""
    stored = []
    for port in ports:
        dims = [_terms(dim) for dim in port.shape or ()]
        known = [dim for dim in dims if dim is not None]
        is_array = port.kind == "tensor" and port.complex is None and port.shape is not None
        if port.dtype is None or not is_array or len(known) < len(dims):
            return None
        stored.append(StoredPort(port.name, np.dtype(port.dtype.numpy()).name, tuple(known)))
    return tuple(stored)


def _terms(dim: Dim) -> Terms | None:
    """Return ``dim`` as terms of whole factors; None for other dims, such as ``floor(N/2)``."""
    if isinstance(dim, int):
        return ((dim, ()),)
    if dim.value is None or _CALL.search(dim.value):
        return None  # for sizes of 1 and more, Max(0, N - 1) reads as N - 1
    if is_one_symbol(dim):
        return ((1, (dim.value,)),)
    names = sorted(symbols_of(dim))
    expression = expression_of(dim)
    symbols = {symbol.name: symbol for symbol in expression.free_symbols}
    polynomial = expression.as_poly(*(symbols[name] for name in names))
    if polynomial is None or not all(factor.is_Integer for factor in polynomial.coeffs()):
        return None
    terms = []
    for powers, factor in polynomial.terms():
        factors = zip(names, powers, strict=True)
        terms.append((int(factor), tuple(name for name, power in factors for _ in range(power))))
    return tuple(terms)
