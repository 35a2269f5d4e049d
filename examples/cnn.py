"""A small image classifier in flax nnx, NHWC, for MNIST-like images.

    smelt convert examples.cnn:model --input 'f32[B,28,28,1]' -o cnn.onnx
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

CLASSES = 10


class CNN(nnx.Module):
    """Two convolutions with batch norm, two dense layers."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv1 = nnx.Conv(1, 16, kernel_size=(3, 3), rngs=rngs)
        self.norm1 = nnx.BatchNorm(16, use_running_average=True, rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, kernel_size=(3, 3), rngs=rngs)
        self.norm2 = nnx.BatchNorm(32, use_running_average=True, rngs=rngs)
        self.dense1 = nnx.Linear(7 * 7 * 32, 64, rngs=rngs)
        self.dense2 = nnx.Linear(64, CLASSES, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.avg_pool(nnx.relu(self.norm1(self.conv1(x))), (2, 2), (2, 2))
        x = nnx.avg_pool(nnx.relu(self.norm2(self.conv2(x))), (2, 2), (2, 2))
        x = nnx.relu(self.dense1(x.reshape(x.shape[0], -1)))
        return jax.nn.softmax(self.dense2(x))


def _trained_looking(module: CNN) -> CNN:
    """Statistics and biases as training leaves them: neither zeros nor ones."""
    key = jax.random.key(1)
    for norm in (module.norm1, module.norm2):
        size = norm.mean.shape
        norm.mean[...] = 0.1 * jax.random.normal(key, size)
        norm.var[...] = 0.5 + jax.random.uniform(key, size)
        norm.bias[...] = 0.1 * jax.random.normal(key, size)
    return module


_cnn = _trained_looking(CNN(nnx.Rngs(0)))


def model(image: jax.Array) -> jax.Array:
    """Class probabilities ``f32[B,10]`` of images ``f32[B,28,28,1]``."""
    return _cnn(jnp.asarray(image))
