"""Named axes of symbolic sizes, and positions along them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

SIZES = [{"N": size} for size in (1, 4, 9)]


def test_sums_of_values_that_are_constant_along_an_axis(check):
    def fn(x):
        def row(v):
            numbers = v / lax.psum(1, "b"), v * lax.psum(2.5, "b"), v + lax.pmean(1.0, "b")
            arrays = lax.psum(True, "b"), lax.psum(jnp.arange(3), "b"), lax.psum(jnp.ones(2), "b")
            return numbers, arrays, v * lax.axis_size("b"), lax.pmean(v, "b")

        return jax.vmap(row, axis_name="b")(x)

    check(fn, "f32[N,3]", sizes=SIZES)
    check(fn, "f16[N,3]", sizes=SIZES, rtol=1e-2)


def test_normalization_over_a_batch(check):
    """equinox's batch normalization computes its statistics as means over a named axis."""
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")

    def fn(x):
        over: Any = {"axis_name": "batch", "in_axes": (0, None), "out_axes": (0, None)}
        normed, moved = jax.vmap(norm, **over)(x, state)
        return normed, jax.tree.leaves(moved)

    check(fn, "f32[N,3]", sizes=SIZES)


def test_rotary_positions(check):
    """Sizes exceed those for which equinox caches angles; the cache keeps no tracers."""
    rotary = eqx.nn.RotaryPositionalEmbedding(6)
    rotary(jnp.ones((2, 6)))
    check(rotary, "f32[N,6]", sizes=SIZES)
    check(jax.vmap(rotary, 1, 1), "f32[N,2,6]", sizes=SIZES)
    assert rotary(jnp.ones((12, 6))).shape == (12, 6)
