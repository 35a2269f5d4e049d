"""Loops and branches of JAX and ONNX, compiled to C and for the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import smelt

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4)).astype(np.float32)
X = RNG.normal(size=(6, 4)).astype(np.float32)


def recurrent(x):
    def step(h, row):
        h = jnp.tanh(h @ W + row)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(4), x)


def backwards(x):
    return lax.scan(lambda h, row: (h + row, h * row), jnp.ones(4), x, reverse=True)


def counted(x):
    return lax.fori_loop(0, 5, lambda i, v: v * 0.5 + x[0] * i, x[1])


def until_small(x):
    def shrink(state):
        i, v = state
        return i + 1, v * 0.7

    return lax.while_loop(lambda s: jnp.abs(s[1]).sum() > 0.1, shrink, (0, x[0]))


def never(x):
    return lax.while_loop(lambda v: v.sum() > 1e9, lambda v: v * 2, x)


def chosen(x):
    return lax.cond(x.sum() > 0, lambda v: v @ W, jnp.cos, x)


def nested(x):
    def outer(total, row):
        def inner(v):
            return v * 0.5 + row.min() * 0.01

        return total + lax.while_loop(lambda v: v.max() > 0.2, inner, jnp.abs(row)), total

    return lax.scan(outer, jnp.zeros(4), x)


def swapped(x):
    return lax.fori_loop(0, 3, lambda i, s: (s[1], s[0] + s[1]), (x[0], x[1]))


def squares(x):
    return lax.map(lambda row: row @ row, x)


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(
    "function",
    [recurrent, backwards, counted, until_small, never, chosen, nested, swapped, squares],
    ids=lambda function: function.__name__,
)
def test_agrees_with_jax(function, target: str) -> None:
    artifact = smelt.compile(function, "f32[6,4]", target=target)
    run = artifact.load()
    for x in (X, -X):
        for got, want in zip(run(x), jax.tree.leaves(function(x)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
