"""Cosine transforms and LU row swaps for symbolic sizes; JAX writes them for numbers only.

If all sizes are numbers, JAX's own code is traced.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.patching.library_functions import (
    DCT_DEINTERLEAVE,
    DCT_INTERLEAVE,
)
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function


def _interleave(original: Function) -> Function:
    """Return a replacement of ``_dct_interleave`` for a symbolic size."""

    def interleave(x: Any, axis: int) -> Any:
        """Return elements 0, 2, 4, ..., 5, 3, 1 along ``axis``."""
        size = x.shape[axis]
        if not is_symbolic(size):
            return original(x, axis)
        positions = jnp.arange(size)
        after = 2 * (size - 1 - positions) + 1
        return _take_along(x, jnp.where(2 * positions < size, 2 * positions, after), axis)

    return interleave


def _deinterleave(original: Function) -> Function:
    """Return a replacement of ``_dct_deinterleave``, the inverse of ``_interleave``."""

    def deinterleave(x: Any, axis: int) -> Any:
        """Return the elements in their order before ``_interleave``."""
        size = x.shape[axis]
        if not is_symbolic(size):
            return original(x, axis)
        positions = jnp.arange(size)
        after = size - 1 - positions // 2
        return _take_along(x, jnp.where(positions % 2 == 0, positions // 2, after), axis)

    return deinterleave


def _take_along(x: Any, positions: Any, axis: int) -> Any:
    """Return the elements of ``x`` at ``positions`` along ``axis``."""
    return jnp.take(x, positions, axis, mode="clip")


def swapped_rows(pivots: Any, size: Any) -> Any:
    """Return the order of ``size`` rows after the swaps of an LU decomposition.

    ``pivots`` is int32 ``[..., k]``: step i exchanges row i and row ``pivots[..., i]``. The result
    is int32 ``[..., size]``.
    """
    positions = jnp.arange(size, dtype=np.int32)

    def swap(i: Any, rows: Any) -> Any:
        """Exchange row i and row ``pivots[..., i]``."""
        partner = lax.dynamic_slice_in_dim(pivots, i, 1, -1)
        this_row = lax.dynamic_slice_in_dim(rows, i, 1, -1)
        other_row = jnp.take_along_axis(rows, partner, -1)
        return jnp.where(positions == i, other_row, jnp.where(positions == partner, this_row, rows))

    rows = jnp.broadcast_to(positions, (*pivots.shape[:-1], size))
    return lax.fori_loop(0, pivots.shape[-1], swap, rows)


for _function, _stand_in in (
    (DCT_INTERLEAVE, _interleave),
    (DCT_DEINTERLEAVE, _deinterleave),
):
    register(Patch(_function.target, _stand_in, parameters=_function.parameters))
