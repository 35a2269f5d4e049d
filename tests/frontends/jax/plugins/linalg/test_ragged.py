"""Products of rows in groups."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

SIZES = [[2, 3, 1], [0, 6, 0], [1, 0, 2], [0, 0, 0], [6, 0, 0]]


@pytest.mark.parametrize("dtype", ["f32", "i32", "f64"])
def test_rows_in_groups(check, dtype):
    rng = np.random.default_rng(0)
    inputs = [[rng.integers(-5, 5, (6, 4)), rng.integers(-5, 5, (3, 4, 5)), s] for s in SIZES]
    specs = f"{dtype}[6,4]", f"{dtype}[3,4,5]", "i32[3]"
    check(lax.ragged_dot, *specs, inputs=inputs, x64=dtype == "f64")


@pytest.mark.parametrize("ragged", ["rows", "contracting", "batch"])
def test_every_ragged_dim(check, ragged):
    rows = ((((1,), (1,)), ((), ())), [0], [0])
    contracting = ((((1,), (0,)), ((), ())), [1], [])
    batch = ((((2,), (1,)), ((0,), (0,))), [0], [])
    shapes = {
        "rows": (rows, "6,4", "3,4,5"),
        "contracting": (contracting, "4,6", "6,5"),
        "batch": (batch, "6,2,4", "6,4,5"),
    }
    dims, left, right = shapes[ragged]
    numbers = lax.RaggedDotDimensionNumbers(*dims)
    fn = lambda x, w: lax.ragged_dot_general(x, w, jnp.array([2, 0, 3]), numbers)  # noqa: E731
    check(fn, f"f32[{left}]", f"f32[{right}]", rtol=1e-4, atol=1e-5)


def test_derivatives(check):
    groups = jnp.array([1, 3, 2])
    energy = lambda x, w: (lax.ragged_dot(x, w, groups) ** 2).sum()  # noqa: E731
    check(jax.grad(energy, (0, 1)), "f32[6,4]", "f32[3,4,5]", rtol=1e-3, atol=1e-3)


def test_an_unknown_number_of_rows(check):
    groups = jnp.array([1, 2, 1])
    check(lambda x, w: lax.ragged_dot(x, w, groups), "f32[B,4]", "f32[3,4,5]", rtol=1e-4, atol=1e-5)
