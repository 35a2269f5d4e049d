"""Sizes as values, where inputs of the model have the dims."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.dims import symbols_of
from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim, same_dim


def told_size(dim: Dim, graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """A vector of one int64: ``dim``, read off an input of ``graph``, so that all who ask share
    it; a number more than a dim of an input, too. None if no input has it."""
    if isinstance(dim, int):
        return b.const_i64([dim])
    found = _read(dim, graph, b)
    if found is not None:
        return found
    symbol, more = _symbol_and_more(dim)
    base = _read(symbol, graph, b) if symbol is not None else None
    return b.op("Add", base, b.const_i64([more])) if base is not None else None


def _read(dim: ir.SymbolicDim, graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    for value in graph.inputs if graph is not None else ():
        for axis, declared in enumerate(value.shape or ()):
            if not isinstance(declared, int) and same_dim(declared, dim):
                return b.op("Shape", value, start=axis, end=axis + 1)
    return None


def _symbol_and_more(dim: ir.SymbolicDim) -> tuple[ir.SymbolicDim | None, int]:
    """The symbol and the number whose sum ``dim`` is; None if it is another expression."""
    names = symbols_of(dim)
    expression = expression_of(dim) if len(names) == 1 and dim.value not in names else None
    if expression is None:
        return None, 0
    (symbol,) = expression.free_symbols
    more = expression - symbol
    return (ir.SymbolicDim(*names), int(more)) if more.is_Integer else (None, 0)


def told_shape(dims: Sequence[Dim], graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """A vector of all ``dims``; None if no input has one of them."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if len(numbers) == len(dims):
        return b.const_i64(numbers)
    sizes = [told_size(dim, graph, b) for dim in dims]
    known = [size for size in sizes if size is not None]
    return b.op("Concat", *known, axis=0) if len(known) == len(sizes) else None
