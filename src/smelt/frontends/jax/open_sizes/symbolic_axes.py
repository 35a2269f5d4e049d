"""Two functions that need the size of an axis as a number: JAX's ``_const`` and equinox's rotary.

JAX sums a value that is constant along a named axis by a product with the axis size, which
``_const`` makes a constant. equinox caches the rotary angles for the longest axis so far. If all
sizes are numbers, their own code is traced.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.patching.library_functions import CONSTANT, EQUINOX_ROTARY
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function


def _constant(original: Function) -> Function:
    """Return a replacement of JAX's ``_const`` that accepts a symbolic size as the value."""

    def constant(example: Any, val: Any) -> Any:
        """Return ``val`` as a constant in the dtype of ``example``.

        Beside an int, a symbolic size remains a size.
        """
        if not is_symbolic(val):
            return original(example, val)
        if isinstance(example, int):
            return val
        size = jnp.asarray(val)
        is_weak = isinstance(example, float)
        return 1.0 * size if is_weak else size.astype(jnp.result_type(example))

    return constant


def _rotary(original: Function) -> Function:
    """Return a replacement of equinox's rotary embedding that computes the angles in the trace."""

    def rotated(self: Any, x: Any, *, key: Any = None) -> Any:
        """Return ``x [length, width]`` with each row rotated by the angles of its position."""
        length, width = x.shape
        if not is_symbolic(length) or width != self.embedding_size:
            return original(self, x, key=key)
        rates = 1.0 / (self.theta ** (jnp.arange(0.0, width, 2)[None] / width))
        angles = jnp.outer(jnp.arange(length, dtype=rates.dtype), rates)
        cos, sin = (
            jnp.tile(function(angles).astype(self.dtype), (1, 2)) for function in (jnp.cos, jnp.sin)
        )
        return (x * cos + self.rotate_half(x) * sin).astype(x.dtype)

    return rotated


register(Patch(CONSTANT.target, _constant, parameters=CONSTANT.parameters))
register(Patch(EQUINOX_ROTARY.target, _rotary, optional=True, parameters=EQUINOX_ROTARY.parameters))
