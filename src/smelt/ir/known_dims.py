"""Which of two statements about a shape says more, and what both say together.

A size says more than a name, a name of the model more than one that inference made up, and any
name more than nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.invented_dims import is_invented
from smelt.ir.same_shape import Dim


def says_more(new: Dim, old: Dim) -> bool:
    """True if ``new`` is known better than ``old``; never of two that are known alike."""
    if isinstance(old, int):
        return False
    return isinstance(new, int) or _degree(new) > _degree(old)


def _degree(dim: ir.SymbolicDim) -> int:
    if dim.value is None:
        return 0
    return 1 if is_invented(dim.value) else 2


def merged(old: Sequence[Dim], new: Sequence[Dim]) -> list[Dim] | None:
    """For each dim the statement that says more; None if ``new`` adds nothing to ``old``.

    Statements about different ranks cannot be merged: the old one stands.
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
