"""JAX functions after one run of the default pipeline, with the results of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt
from smelt.runtime.inputs import random_inputs
from smelt.runtime.runner import open_runner

TABLE = jnp.arange(12.0).reshape(4, 3)
SLOPES = jnp.asarray([0.5, -1.0, 2.0, 0.25])
CASES: dict[str, tuple[Callable[..., Any], Sequence[str], Sequence[str]]] = {
    "pad by reflection": (
        lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode="reflect"),
        ["f32[B,5]"],
        ["Pad"],
    ),
    "pad by reflection, two axes": (
        lambda x: jnp.pad(x, ((1, 2), (2, 1)), mode="reflect"),
        ["f32[3,5]"],
        ["Pad"],
    ),
    "pad by reflection, past the far edge": (
        lambda x: jnp.pad(x, ((0, 0), (7, 1)), mode="reflect"),
        ["f32[3,5]"],
        ["Slice", "Slice", "Slice", "Concat"],
    ),
    "pad by the edge": (
        lambda x: jnp.pad(x, ((0, 0), (3, 2), (1, 0)), mode="edge"),
        ["f32[B,5,4]"],
        ["Pad"],
    ),
    "pad by wrapping": (
        lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode="wrap"),
        ["f32[B,5]"],
        ["Pad"],
    ),
    "pad by symmetry": (
        lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode="symmetric"),
        ["f32[B,5]"],
        ["Slice", "Slice", "Concat"],
    ),
    "mean": (lambda x: jnp.mean(x, 1), ["f32[B,5]"], ["ReduceMean"]),
    "mean, dims kept": (lambda x: jnp.mean(x, 1, keepdims=True), ["f32[B,5]"], ["ReduceMean"]),
    "mean over a symbol": (lambda x: jnp.mean(x, 0), ["f32[B,5]"], ["ReduceMean"]),
    "mean of all": (jnp.mean, ["f32[B,5,S]"], ["ReduceMean"]),
    "variance": (
        lambda x: jnp.var(x, 1),
        ["f32[B,5]"],
        ["ReduceMean", "Sub", "Mul", "ReduceMean"],
    ),
    "variance over a symbol": (
        lambda x: jnp.var(x, 0, keepdims=True),
        ["f32[B,5]"],
        ["ReduceMean", "Sub", "Mul", "ReduceMean"],
    ),
    "one-hot of a clipped index": (
        lambda i: jax.nn.one_hot(jnp.clip(i, 0, 3), 4) @ TABLE,
        ["i32[B,6]"],
        ["Clip", "Gather"],
    ),
    "one-hot of a remainder": (
        lambda i: jax.nn.one_hot(i % 4, 4) @ TABLE,
        ["i32[6]"],
        ["Mod", "Gather"],
    ),
    "slopes, by >": (lambda x: jnp.where(x > 0, x, SLOPES * x), ["f32[B,4]"], ["PRelu"]),
    "slopes, by >=": (lambda x: jnp.where(x >= 0, x, x * SLOPES), ["f32[B,4]"], ["PRelu"]),
    "slopes, by parts": (
        lambda x: jnp.maximum(x, 0) + SLOPES * jnp.minimum(x, 0),
        ["f32[B,4]"],
        ["PRelu"],
    ),
    "slopes of jax.nn": (lambda x: jax.nn.leaky_relu(x, SLOPES), ["f32[B,4]"], ["PRelu"]),
    "cond": (
        lambda x: jax.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, x),
        ["f32[B,4]"],
        ["ReduceSum", "Greater", "If"],
    ),
    "cond of a constant": (
        lambda x: jax.lax.cond(x.shape[1] > 3, lambda x: x + 1, lambda x: x * 2, x),
        ["f32[B,4]"],
        ["Add"],
    ),
    "a loop of one trip": (
        lambda x: jax.lax.fori_loop(0, 1, lambda i, x: jnp.sin(x) * x, x),
        ["f32[B,4]"],
        ["Sin", "Mul"],
    ),
    "a loop of no trips": (
        lambda x: jax.lax.fori_loop(0, 0, lambda i, x: jnp.sin(x) * x, x) + 1,
        ["f32[B,4]"],
        ["Add"],
    ),
    "hard_swish": (jax.nn.hard_swish, ["f32[B,4]"], ["HardSwish"]),
    "sigmoid by hand": (lambda x: x.T @ (1 / (1 + jnp.exp(-x))), ["f32[B,4]"], ["Sigmoid", "Gemm"]),
    "flip of a part": (lambda x: jnp.flip(x[:, 1:4], 1), ["f32[3,5]"], ["Slice"]),
    "flip of one row": (lambda x: jnp.flip(x, 1) + 1, ["f32[B,1]"], ["Add"]),
}


@pytest.mark.parametrize(("function", "specs", "operators"), CASES.values(), ids=CASES.keys())
def test_one_run(
    function: Callable[..., Any], specs: Sequence[str], operators: Sequence[str]
) -> None:
    model = smelt.optimize(smelt.trace(function, *specs))
    assert [node.op_type for node in model.graph] == list(operators)
    run = open_runner(model)
    for size in (3, 1):
        for mode in ("normal", "edges"):
            inputs = random_inputs(model, {"B": size, "S": size + 1}, seed=size, mode=mode)
            (got,) = run(*inputs)
            np.testing.assert_allclose(
                got, function(*map(jax.device_put, inputs)), rtol=1e-5, atol=1e-6
            )
