"""What a variable of a jaxpr is bound to: a value, perhaps one that still has to be broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim


@dataclass(frozen=True, slots=True)
class Operand:
    """``value`` has ``shape``, which broadcasts to the shape of the variable as in NumPy.

    JAX broadcasts by explicit equations where ONNX operators do it themselves, so a broadcast is
    put off until something needs the full array, which is mostly never.
    """

    value: ir.Value
    shape: tuple[Dim, ...]


def broadcast_shapes(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """The shape of an elementwise result; symbolic dims are 1 only if written so."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for i, dim in enumerate(shape, start=rank - len(shape)):
            if not (isinstance(dim, int) and dim == 1):
                result[i] = dim
    return tuple(result)


def adds_first_ones(small: Sequence[Dim], shape: Sequence[Dim]) -> bool:
    """True if ``shape`` is ``small`` after one or more dims that are 1."""
    added = len(shape) - len(small)
    ones = all(isinstance(dim, int) and dim == 1 for dim in shape[:added])
    return added > 0 and ones and tuple(shape[added:]) == tuple(small)
