"""A step of training with optax: the loss of a small CNN, its gradients, and adam."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from whole_models.whole import Sizes, WholeModel, linen_variables


class Cnn(nn.Module):
    """Images, channels last, to the logits of classes."""

    width: int
    classes: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(self.width, (3, 3))(x))
        x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.gelu(nn.Conv(2 * self.width, (3, 3), (2, 2))(x))
        x = nn.LayerNorm()(x.reshape(x.shape[0], -1))
        return nn.Dense(self.classes)(x)


def build(width: int = 4, classes: int = 5, side: int = 8) -> WholeModel:
    """Parameters, the state of adam and a batch to new ones and the loss."""
    model, optimizer = Cnn(width, classes), optax.adam(1e-2)
    params = linen_variables(model, 1, side, side, 1)
    state = optimizer.init(params)

    def step(params: Any, state: Any, images: jax.Array, labels: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            logits = model.apply(params, images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, new = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), new, value

    def inputs(rng: np.random.Generator, n: Sizes) -> tuple[Any, ...]:
        shape = (n["B"], side, side, 1)
        images = rng.standard_normal(shape).astype("float32")
        labels = rng.integers(0, classes, n["B"]).astype("int32")
        warm = jax.tree.map(lambda v: v + jnp.asarray(1, v.dtype), state)
        return params, warm, images, labels

    specs = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), (params, state))
    batch = (f"f32[B,{side},{side},1]", "i32[B]")
    return WholeModel(step, (*specs, *batch), inputs=inputs)
