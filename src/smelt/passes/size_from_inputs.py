"""Build run-time values for dims: read them off the inputs of the graph by Shape."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.symbolic_dims.dims import symbols_of


def size_from_inputs(dim: Dim, graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """Return an int64 vector of one element that holds ``dim``; None if no input declares it.

    An unknown ``dim`` is read by Shape off an input of ``graph`` that declares it, or that declares
    ``dim`` minus a number. All callers get the same nodes, so they share them.
    """
    if isinstance(dim, int):
        return b.const_i64([dim])
    size = _read(dim, graph, b)
    if size is not None:
        return size
    symbol, offset = _symbol_and_offset(dim)
    base = _read(symbol, graph, b) if symbol is not None else None
    return b.op("Add", base, b.const_i64([offset])) if base is not None else None


def _read(dim: ir.SymbolicDim, graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """Return the Shape slice of an input dim equal to ``dim``; None if no input declares it."""
    if graph is None:
        return None
    for value in graph.inputs:
        for axis, declared in enumerate(value.shape or ()):
            if not isinstance(declared, int) and same_dim(declared, dim):
                return b.size(value, axis)
    return None


def _symbol_and_offset(dim: ir.SymbolicDim) -> tuple[ir.SymbolicDim | None, int]:
    """Return ``(symbol, n)`` if ``dim`` is ``symbol + n``; ``(None, 0)`` for any other
    expression."""
    names = symbols_of(dim)
    expression = expression_of(dim) if len(names) == 1 and dim.value not in names else None
    if expression is None:
        return None, 0
    (symbol,) = expression.free_symbols
    offset = expression - symbol
    return (ir.SymbolicDim(*names), int(offset)) if offset.is_Integer else (None, 0)


def shape_from_inputs(dims: Sequence[Dim], graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """Return an int64 vector of all ``dims``; None if no input declares one of them."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if len(numbers) == len(dims):
        return b.const_i64(numbers)
    sizes = [size_from_inputs(dim, graph, b) for dim in dims]
    known_sizes = [size for size in sizes if size is not None]
    return b.op("Concat", *known_sizes, axis=0) if len(known_sizes) == len(sizes) else None
