"""A small convolutional network in plain JAX, NCHW inside, for the C target.

smelt compile examples.small_cnn:model --input 'f32[B,16,16,1]' --dim B=1 --target c -o out/
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

_k1, _k2, _k3 = jax.random.split(jax.random.key(0), 3)
_conv1 = jax.random.normal(_k1, (8, 1, 3, 3)) / 3
_conv2 = jax.random.normal(_k2, (16, 8, 3, 3)) / 9
_dense = jax.random.normal(_k3, (16 * 4 * 4, 10)) / 16
_bias1 = jnp.linspace(-0.1, 0.1, 8)
_bias2 = jnp.linspace(-0.1, 0.1, 16)


def _conv(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    y = lax.conv_general_dilated(x, weight, (1, 1), "SAME")
    return jax.nn.relu(y + bias[:, None, None])


def _pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def model(image: jax.Array) -> jax.Array:
    """Class probabilities ``f32[B,10]`` of images ``f32[B,16,16,1]``."""
    x = jnp.transpose(image, (0, 3, 1, 2))
    x = _pool(_conv(x, _conv1, _bias1))
    x = _pool(_conv(x, _conv2, _bias2))
    return jax.nn.softmax(x.reshape(x.shape[0], -1) @ _dense)
