"""A causal transformer in flax nnx.

``smelt convert examples.transformer:model --input 'i32[B,32]' -o transformer.onnx``
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 128, 64, 64, 4, 4

_NOISE = nnx.initializers.normal(0.1)


class Block(nnx.Module):
    """Attention and a perceptron, each behind a layer norm and around a shortcut."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(WIDTH, bias_init=_NOISE, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            HEADS, WIDTH, decode=False, bias_init=_NOISE, rngs=rngs
        )
        self.norm2 = nnx.LayerNorm(WIDTH, bias_init=_NOISE, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, bias_init=_NOISE, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, bias_init=_NOISE, rngs=rngs)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """``[batch, length, width]`` to the same."""
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x)), approximate=False))


class Transformer(nnx.Module):
    """Tokens to the logits of the tokens that follow."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.positions = nnx.Embed(LENGTH, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.LayerNorm(WIDTH, bias_init=_NOISE, rngs=rngs)
        self.head = nnx.Linear(WIDTH, VOCABULARY, bias_init=_NOISE, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """``[batch, length]`` tokens to ``[batch, length, vocabulary]`` logits."""
        x = self.tokens(tokens) + self.positions(jnp.arange(tokens.shape[1]))
        mask = nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


model = Transformer(nnx.Rngs(0))
