"""A four-layer transformer in flax nnx: embedding, causal attention, exact GELU.

    smelt convert examples.transformer:model --input 'i32[B,32]' -o transformer.onnx
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

VOCABULARY = 128
WIDTH = 64
HEADS = 4
LAYERS = 4
LENGTH = 32


class Block(nnx.Module):
    """Attention and a perceptron, each behind a layer norm and beside a residual."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            num_heads=HEADS, in_features=WIDTH, decode=False, deterministic=True, rngs=rngs
        )
        self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.down(jax.nn.gelu(self.up(self.norm2(x)), approximate=False))


class Transformer(nnx.Module):
    """Token ids to logits."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.positions = nnx.Embed(LENGTH, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.head = nnx.Linear(WIDTH, VOCABULARY, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        length = tokens.shape[1]
        mask = jnp.tril(jnp.ones((length, length), dtype=bool))[None, None]
        x = self.tokens(tokens) + self.positions(jnp.arange(length))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


_transformer = Transformer(nnx.Rngs(0))


def model(tokens: jax.Array) -> jax.Array:
    """Logits ``f32[B,S,128]`` of token ids ``i32[B,S]``, S at most 32."""
    return _transformer(tokens)
