"""Compares and merges two statements about a shape.

A number says more than a name, a name from the model more than an invented one, and any name more
than an unknown dim.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.invented_dims import is_invented


def says_more(new: Dim, old: Dim) -> bool:
    """True if ``new`` says strictly more than ``old``."""
    if isinstance(old, int):
        return False
    return isinstance(new, int) or _degree(new) > _degree(old)


def _degree(dim: ir.SymbolicDim) -> int:
    """Return how much is known of ``dim``: 0 unknown, 1 invented name, 2 name from the model."""
    if dim.value is None:
        return 0
    return 1 if is_invented(dim.value) else 2


def merged_statements(old: Sequence[Dim], new: Sequence[Dim]) -> list[Dim] | None:
    """Return for each dim the statement that says more; None if ``new`` adds nothing to ``old``.

    Statements of different ranks cannot be merged: the old one stays.
    """
    if len(old) != len(new):
        return None
    gained = False
    dims = list(old)
    for index, dim in enumerate(new):
        if dim is not dims[index] and says_more(dim, dims[index]):
            dims[index] = dim
            gained = True
    return dims if gained else None
