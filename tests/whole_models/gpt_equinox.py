"""GPT in equinox: one sequence a call, mapped over the batch; a causal mask of booleans."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from whole_models.whole import WholeModel, equinox_module


class Block(eqx.Module):
    """Attention and an MLP, each behind a norm and beside a residual."""

    attention: eqx.nn.MultiheadAttention
    expand: eqx.nn.Linear
    contract: eqx.nn.Linear
    norm_1: eqx.nn.LayerNorm
    norm_2: eqx.nn.LayerNorm

    def __init__(self, width: int, heads: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.attention = eqx.nn.MultiheadAttention(heads, width, key=keys[0])
        self.expand = eqx.nn.Linear(width, 4 * width, key=keys[1])
        self.contract = eqx.nn.Linear(4 * width, width, key=keys[2])
        self.norm_1 = eqx.nn.LayerNorm(width)
        self.norm_2 = eqx.nn.LayerNorm(width)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        y = jax.vmap(self.norm_1)(x)
        x = x + self.attention(y, y, y, mask=mask)
        y = jax.vmap(self.expand)(jax.vmap(self.norm_2)(x))
        return x + jax.vmap(self.contract)(jax.nn.gelu(y))


class Gpt(eqx.Module):
    """The token numbers of one sequence to the logits of the next token."""

    tokens: eqx.nn.Embedding
    positions: eqx.nn.Embedding
    blocks: list[Block]
    norm: eqx.nn.LayerNorm

    def __init__(
        self, layers: int, width: int, heads: int, words: int, longest: int, key: jax.Array
    ) -> None:
        first, second, *rest = jax.random.split(key, layers + 2)
        self.tokens = eqx.nn.Embedding(words, width, key=first)
        self.positions = eqx.nn.Embedding(longest, width, key=second)
        self.blocks = [Block(width, heads, each) for each in rest]
        self.norm = eqx.nn.LayerNorm(width)

    def __call__(self, ids: jax.Array) -> jax.Array:
        (length,) = ids.shape
        mask = jnp.tril(jnp.ones((length, length), bool))
        x = jax.vmap(self.tokens)(ids) + jax.vmap(self.positions)(jnp.arange(length))
        for block in self.blocks:
            x = block(x, mask)
        return jax.vmap(self.norm)(x) @ self.tokens.weight.T


def build(
    layers: int = 12, width: int = 32, heads: int = 4, words: int = 61, longest: int = 64
) -> WholeModel:
    """The model, its batch and its length symbolic."""
    return WholeModel(
        jax.vmap(equinox_module(lambda key: Gpt(layers, width, heads, words, longest, key))),
        ("i32[B,S]",),
        ({"B": 1, "S": 5}, {"B": 3, "S": 64}),
        constraints=(f"S <= {longest}",),
        inputs=lambda rng, n: (rng.integers(0, words, (n["B"], n["S"])).astype("int32"),),
    )
