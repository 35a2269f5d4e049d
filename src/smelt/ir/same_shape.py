"""Proofs about dims and shapes: equal, different, or never 0. An unknown dim equals nothing."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir.symbolic_dims.empty_dims import expression_allowing_zero
from smelt.ir.symbolic_dims.invented_dims import is_invented

Dim = int | ir.SymbolicDim


def same_dim(a: Dim, b: Dim) -> bool:
    """True only if the two dims are proved equal; unknown dims never are."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a.value is not None and a.value == b.value


def is_positive(dim: Dim, possibly_zero: Iterable[str] | None = None) -> bool:
    """True if the dim is 1 or more in every run.

    ``possibly_zero`` names the input dims that may be 0; None stands for the names of the current
    context (``empty_dims.py``). A dim that shape inference invented may always be 0.
    """
    if isinstance(dim, int):
        return dim > 0
    if dim.value is None or is_invented(dim.value):
        return False
    expression = expression_allowing_zero(dim, possibly_zero)
    return expression is not None and bool(expression.is_positive)


def same_shape(a: ir.Shape | None, b: ir.Shape | None) -> bool:
    """True only if both shapes are known and proved equal, dim by dim."""
    if a is None or b is None or len(a) != len(b):
        return False
    for x, y in zip(a.dims, b.dims, strict=True):
        # Most dims are the same object; a generator, or a call of each, takes twice as long.
        if not ((x is y and isinstance(x, int)) or same_dim(x, y)):
            return False
    return True


def conflicting_shapes(a: ir.Shape | None, b: ir.Shape | None) -> bool:
    """True if the two shapes are proved different."""
    if a is None or b is None or a is b:
        return False
    if len(a) != len(b):
        return True
    for a_dim, b_dim in zip(a.dims, b.dims, strict=True):
        if (
            a_dim is not b_dim
            and isinstance(a_dim, int)
            and isinstance(b_dim, int)
            and a_dim != b_dim
        ):
            return True
    return False


def static_shape(value: ir.Value) -> tuple[int, ...] | None:
    """Return the shape of ``value`` as ints, or None if a dim is unknown or symbolic."""
    if value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(dim) for dim in value.shape.dims if isinstance(dim, int))
