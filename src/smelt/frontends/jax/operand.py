"""The value that a variable of a jaxpr is bound to; its broadcast may be delayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of ``shape``, which broadcasts to the shape of the variable as in NumPy.

    ``shape`` is that of ``value``; the variable's shape may be larger. JAX broadcasts by explicit
    equations, but ONNX operators broadcast by themselves. So a broadcast is delayed until a node
    needs the full array, which is rare.
    """

    value: ir.Value
    shape: tuple[Dim, ...]


def broadcast_shapes(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """Return the shape of an elementwise result; a symbolic dim is never treated as 1."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for i, dim in enumerate(shape, start=rank - len(shape)):
            if not (isinstance(dim, int) and dim == 1):
                result[i] = dim
    return tuple(result)


def adds_first_ones(small: Sequence[Dim], shape: Sequence[Dim]) -> bool:
    """True if ``shape`` is ``small`` with one or more leading dims of 1."""
    added = len(shape) - len(small)
    ones = all(isinstance(dim, int) and dim == 1 for dim in shape[:added])
    return added > 0 and ones and tuple(shape[added:]) == tuple(small)
