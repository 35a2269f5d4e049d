"""A trace skips work of libraries that does not change the result."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from smelt.frontends.jax import trace


class Unprintable:
    """A layer that takes long to print."""

    def __init__(self):
        self.printed = 0

    def __call__(self, x):
        return x + 1

    def __repr__(self):
        self.printed += 1
        return "<a long text>"


def test_layers_are_not_printed_for_their_place_in_the_source():
    layer = Unprintable()
    trace(jax.vmap(layer), "f32[3,2]")
    assert layer.printed == 0
    jax.make_jaxpr(jax.vmap(layer))(jnp.ones((3, 2)))
    assert layer.printed > 0


def test_built_in_functions_keep_their_names(check):
    check(jax.vmap(max, in_axes=(0,)), "f32[1,1]")
