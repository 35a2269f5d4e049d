"""A multilayer perceptron in plain JAX, small enough for a microcontroller.

smelt compile examples.mlp:model --input 'f32[B,16]' --dim B=1 --target c -o out/
"""

from __future__ import annotations

import jax

SIZES = (16, 64, 64, 8)

_keys = jax.random.split(jax.random.key(0), len(SIZES))
_layers = [
    (jax.random.normal(key, (n, m)) / n**0.5, 0.1 * jax.random.normal(key, (m,)))
    for key, n, m in zip(_keys, SIZES[:-1], SIZES[1:], strict=False)
]


def model(x: jax.Array) -> jax.Array:
    """Outputs ``f32[B,8]`` of features ``f32[B,16]``."""
    for weight, bias in _layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = _layers[-1]
    return x @ weight + bias
