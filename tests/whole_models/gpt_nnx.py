"""GPT in flax nnx: pre-norm blocks, causal attention, the output head tied to the embedding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from whole_models.whole import WholeModel, nnx_module


class Block(nnx.Module):
    """Attention and an MLP, each behind a norm and beside a residual."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs) -> None:
        self.norm_1 = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.norm_2 = nnx.LayerNorm(width, rngs=rngs)
        self.expand = nnx.Linear(width, 4 * width, rngs=rngs)
        self.contract = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x = x + self.attention(self.norm_1(x), mask=mask)
        return x + self.contract(nnx.gelu(self.expand(self.norm_2(x))))


class Gpt(nnx.Module):
    """Token numbers to the logits of the next token."""

    def __init__(
        self, layers: int, width: int, heads: int, words: int, longest: int, rngs: nnx.Rngs
    ) -> None:
        self.tokens = nnx.Embed(words, width, rngs=rngs)
        self.positions = nnx.Embed(longest, width, rngs=rngs)
        self.blocks = nnx.List(Block(width, heads, rngs) for _ in range(layers))
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, ids: jax.Array) -> jax.Array:
        mask = nnx.make_causal_mask(ids)
        x = self.tokens(ids) + self.positions(jnp.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return self.tokens.attend(self.norm(x))


def build(
    layers: int = 12, width: int = 32, heads: int = 4, words: int = 61, longest: int = 64
) -> WholeModel:
    """The model, its batch and its length symbolic."""
    return WholeModel(
        nnx_module(lambda rngs: Gpt(layers, width, heads, words, longest, rngs)),
        ("i32[B,S]",),
        ({"B": 1, "S": 5}, {"B": 3, "S": 64}),
        constraints=(f"S <= {longest}",),
        inputs=lambda rng, n: (rng.integers(0, words, (n["B"], n["S"])).astype("int32"),),
    )
