"""Sizes as values, where inputs of the model have the dims."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.shapes import Dim, same_dim


def told_size(dim: Dim, graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """A vector of one int64: ``dim``, read off an input of ``graph``, so that all who ask share
    it; None if no input has it."""
    if isinstance(dim, int):
        return b.const_i64([dim])
    for value in graph.inputs if graph is not None else ():
        for axis, declared in enumerate(value.shape or ()):
            if not isinstance(declared, int) and same_dim(declared, dim):
                return b.op("Shape", value, start=axis, end=axis + 1)
    return None


def told_shape(dims: Sequence[Dim], graph: ir.Graph | None, b: Builder) -> ir.Value | None:
    """A vector of all ``dims``; None if no input has one of them."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if len(numbers) == len(dims):
        return b.const_i64(numbers)
    sizes = [told_size(dim, graph, b) for dim in dims]
    known = [size for size in sizes if size is not None]
    return b.op("Concat", *known, axis=0) if len(known) == len(sizes) else None
