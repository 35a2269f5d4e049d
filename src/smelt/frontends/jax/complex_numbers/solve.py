"""Linear systems in complex numbers, as real ones of twice the size."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.frontends.jax.library_functions import SOLVE
from smelt.frontends.jax.patches import Patch, register
from smelt.frontends.jax.replacement import Function


def _solve(original: Function) -> Function:
    """``(P + iQ)(x + iy) = u + iv`` is ``[[P, -Q], [Q, P]] [x, y] = [u, v]``."""

    def solve(a: Any, b: Any) -> Any:
        if not jnp.iscomplexobj(a):
            return original(a, b)
        rows = a.shape[-1]
        upper = jnp.concatenate((a.real, -a.imag), -1)
        lower = jnp.concatenate((a.imag, a.real), -1)
        axis = -1 if b.ndim == a.ndim - 1 else -2
        right = jnp.concatenate((b.real, b.imag), axis)
        x = original(jnp.concatenate((upper, lower), -2), right)
        real = lax.slice_in_dim(x, 0, rows, axis=axis)
        return lax.complex(real, lax.slice_in_dim(x, rows, 2 * rows, axis=axis))

    return solve


register(Patch(SOLVE.target, _solve, parameters=SOLVE.parameters))
