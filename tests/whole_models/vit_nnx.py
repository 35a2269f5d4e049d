"""ViT-B/16 in flax nnx, its attention ``jax.nn.dot_product_attention``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from whole_models.whole import WholeModel, nnx_module


class Block(nnx.Module):
    """Attention and an MLP, each behind a norm and beside a residual."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs) -> None:
        head = (heads, width // heads)
        self.norm_1 = nnx.LayerNorm(width, epsilon=1e-6, rngs=rngs)
        self.query = nnx.LinearGeneral(width, head, rngs=rngs)
        self.key = nnx.LinearGeneral(width, head, rngs=rngs)
        self.value = nnx.LinearGeneral(width, head, rngs=rngs)
        self.out = nnx.LinearGeneral(head, width, axis=(-2, -1), rngs=rngs)
        self.norm_2 = nnx.LayerNorm(width, epsilon=1e-6, rngs=rngs)
        self.expand = nnx.Linear(width, 4 * width, rngs=rngs)
        self.contract = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        y = self.norm_1(x)
        x = x + self.out(jax.nn.dot_product_attention(self.query(y), self.key(y), self.value(y)))
        y = nnx.gelu(self.expand(self.norm_2(x)), approximate=False)
        return x + self.contract(y)


class Vit(nnx.Module):
    """Images, channels last, to the logits of classes."""

    def __init__(
        self, layers: int, width: int, heads: int, classes: int, places: int, rngs: nnx.Rngs
    ) -> None:
        self.patches = nnx.Conv(3, width, (16, 16), (16, 16), padding="VALID", rngs=rngs)
        self.first = nnx.Param(jax.random.normal(rngs.params(), (1, 1, width)))
        self.positions = nnx.Param(jax.random.normal(rngs.params(), (1, places + 1, width)))
        self.blocks = nnx.List(Block(width, heads, rngs) for _ in range(layers))
        self.norm = nnx.LayerNorm(width, epsilon=1e-6, rngs=rngs)
        self.head = nnx.Linear(width, classes, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.patches(x)
        batch, _, _, width = x.shape
        first = jnp.broadcast_to(self.first[...], (batch, 1, width))
        x = jnp.concatenate([first, x.reshape(batch, -1, width)], axis=1) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def build(
    layers: int = 12, width: int = 24, heads: int = 12, classes: int = 10, side: int = 64
) -> WholeModel:
    """The model, its batch symbolic."""
    places = (side // 16) ** 2
    model = nnx_module(lambda rngs: Vit(layers, width, heads, classes, places, rngs))
    return WholeModel(model, (f"f32[B,{side},{side},3]",))
