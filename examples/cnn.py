"""A convolutional network in flax nnx.

``smelt convert examples.cnn:model --input 'f32[B,28,28,1]' -o cnn.onnx``
"""

from __future__ import annotations

import jax
from flax import nnx


class ConvBlock(nnx.Module):
    """Convolution, batch normalization as at inference, relu."""

    def __init__(self, channels: int, features: int, rngs: nnx.Rngs) -> None:
        noise = nnx.initializers.normal(0.1)
        self.conv = nnx.Conv(channels, features, (3, 3), bias_init=noise, rngs=rngs)
        self.norm = nnx.BatchNorm(
            features, use_running_average=True, bias_init=noise, scale_init=_near_one, rngs=rngs
        )
        self.norm.mean.value = noise(rngs.params(), (features,))
        self.norm.var.value = _near_one(rngs.params(), (features,)) ** 2

    def __call__(self, x: jax.Array) -> jax.Array:
        """``[batch, height, width, channels]`` to as many features a pixel."""
        return nnx.relu(self.norm(self.conv(x)))


class Cnn(nnx.Module):
    """Digits of 28 by 28 pixels to the logits of ten classes."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        noise = nnx.initializers.normal(0.1)
        self.first = ConvBlock(1, 16, rngs)
        self.second = ConvBlock(16, 32, rngs)
        self.third = ConvBlock(32, 32, rngs)
        self.hidden = nnx.Linear(7 * 7 * 32, 128, bias_init=noise, rngs=rngs)
        self.head = nnx.Linear(128, 10, bias_init=noise, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """``[batch, 28, 28, 1]`` pixels to ``[batch, 10]`` logits."""
        x = nnx.max_pool(self.first(images), (2, 2), (2, 2))
        x = nnx.avg_pool(self.second(x), (2, 2), (2, 2))
        x = x + self.third(x)
        x = nnx.relu(self.hidden(x.reshape(x.shape[0], -1)))
        return self.head(x)


def _near_one(key: jax.Array, shape: tuple[int, ...], *_: object, **__: object) -> jax.Array:
    return 1 + 0.1 * jax.random.normal(key, shape)


model = Cnn(nnx.Rngs(0))
