"""What ``trace`` accepts, how it names things, and what it leaves alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from smelt.frontends.jax import trace


class Mlp(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(8, 16, rngs=rngs, bias_init=nnx.initializers.normal())
        self.head = nnx.Linear(16, 4, rngs=rngs, bias_init=nnx.initializers.normal())

    def __call__(self, x: jax.Array) -> jax.Array:
        return nnx.softmax(self.head(nnx.relu(self.hidden(x))))


def test_converts_an_mlp_for_every_batch(check):
    model = check(Mlp(nnx.Rngs(0)), "f32[B,8]")
    assert [v.name for v in model.graph.inputs] == ["x"]
    assert [v.name for v in model.graph.outputs] == ["out"]
    assert [str(d) for d in model.graph.outputs[0].shape] == ["B", "4"]
    assert {"hidden_kernel", "hidden_bias", "head_kernel", "head_bias"} <= set(model.graph.initializers)
