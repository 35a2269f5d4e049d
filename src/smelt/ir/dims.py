"""Symbolic dims whose names may be any text.

onnx_ir reads the name of a dim as an expression, such as ``2*B``. Exporters also write names
that are none: ``batch size``, ``a,b``, ``n=1``. Such a dim is one symbol of that name.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir


def symbols_of(dim: int | ir.SymbolicDim) -> frozenset[str]:
    """The names that the size of ``dim`` depends on; none for a number and an unknown dim."""
    if isinstance(dim, int) or dim.value is None:
        return frozenset()
    try:
        return dim.free_symbols()
    except (ValueError, RecursionError):
        return frozenset([dim.value])


def size_of(dim: int | ir.SymbolicDim, sizes: Mapping[str, int]) -> int | ir.SymbolicDim:
    """``dim`` with the sizes put in: a number if they say it all, else what is left."""
    if isinstance(dim, int):
        return dim
    if dim.value is not None and dim.value in sizes:
        return sizes[dim.value]
    try:
        return dim.evaluate(sizes)
    except (ValueError, RecursionError):
        return dim
