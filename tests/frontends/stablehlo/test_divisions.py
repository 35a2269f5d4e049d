"""Divisions of symbolic sizes in an exported function are sizes of the model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import smelt

FUNCTIONS = {
    "rolled": lambda x: jnp.roll(x, -1, 0),
    "rolled by more": lambda x: jnp.roll(x, 5, 0),
    "half": lambda x: x[: x.shape[0] // 2],
    "below 0": lambda x: x[: (x.shape[0] - 3) // 2 + 1],
    "rest": lambda x: jnp.arange(x.shape[0] % 3 + 1),
    "rounded up": lambda x: jnp.zeros(-(-x.shape[0] // 4)),
    "by a size": lambda x: jnp.zeros(3 * x.shape[0] // x.shape[0]),
    "rest by a size": lambda x: x[: 7 % x.shape[0]],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_divisions_of_sizes_round_down(name):
    fn = FUNCTIONS[name]
    (size,) = export.symbolic_shape("B", constraints=["B >= 2"])
    given = export.export(jax.jit(fn))(jax.ShapeDtypeStruct((size, 3), jnp.float32))
    run = smelt.compile(given)
    for rows in (2, 5, 8):
        x = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_array_equal(run(x)[0], fn(x))


def floor_divide(a, b):
    return jax.lax.div(a, b) + 1


def test_a_function_with_the_name_of_a_division_may_compute_something_else():
    def half(x):
        size = jax.jit(floor_divide)(jnp.int32(x.shape[0]), jnp.int32(2))
        return x[:1] * size

    (size,) = export.symbolic_shape("B")
    given = export.export(jax.jit(half))(jax.ShapeDtypeStruct((size,), jnp.float32))
    x = np.float32([1, 2, 3, 4])
    np.testing.assert_array_equal(smelt.compile(given)(x)[0], half(x))
