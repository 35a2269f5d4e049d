"""Products of complex arrays that stay one node, for targets with products of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from jax import lax

from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.parts import Parts, primitive

PRODUCT = "complex_dot_general"
"""The primitive of a product that stays one node: four parts in, two parts out."""


def _avals(*parts: compat.Aval, dimension_numbers: Any) -> list[compat.Aval]:
    """Return the types of the real and the imaginary part of the result."""
    lhs, _, rhs, _ = (compat.struct_of(part) for part in parts)
    real = jax.eval_shape(lambda a, b: lax.dot_general(a, b, dimension_numbers), lhs, rhs)
    return [compat.ShapedArray(real.shape, real.dtype)] * 2


_product = primitive(PRODUCT, _avals)


def product(params: Mapping[str, Any], a: Parts, b: Parts) -> Parts:
    """Return ``dot_general`` of ``a`` and ``b`` as one node."""
    numbers = params["dimension_numbers"]
    return Parts(*_product.bind(a.re, a.im, b.re, b.im, dimension_numbers=numbers))


def stays_whole(params: Mapping[str, Any], a: Any, b: Any) -> bool:
    """True for a product of two complex arrays that sums over elements."""
    if not isinstance(a, Parts) or not isinstance(b, Parts):
        return False
    ((contracting, _), _) = params["dimension_numbers"]
    return bool(contracting) and 0 not in (a.re.shape[axis] for axis in contracting)
