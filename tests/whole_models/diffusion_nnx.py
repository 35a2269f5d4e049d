"""A block of a diffusion model in flax nnx: group norms, the time embedded, attention."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from whole_models.whole import WholeModel, nnx_module


def embedded(time: jax.Array, width: int) -> jax.Array:
    """Sines and cosines of ``time`` at ``width // 2`` frequencies."""
    frequencies = jnp.exp(-jnp.log(10000.0) * jnp.arange(width // 2) / (width // 2))
    angles = time[:, None].astype(jnp.float32) * frequencies[None]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


class Residual(nnx.Module):
    """Two convolutions behind group norms, moved by the time."""

    def __init__(self, features: int, width: int, groups: int, rngs: nnx.Rngs) -> None:
        self.norm_1 = nnx.GroupNorm(width, num_groups=groups, rngs=rngs)
        self.conv_1 = nnx.Conv(width, width, (3, 3), rngs=rngs)
        self.time = nnx.Linear(features, width, rngs=rngs)
        self.norm_2 = nnx.GroupNorm(width, num_groups=groups, rngs=rngs)
        self.conv_2 = nnx.Conv(width, width, (3, 3), rngs=rngs)

    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        y = self.conv_1(nnx.silu(self.norm_1(x)))
        y = y + self.time(nnx.silu(time))[:, None, None, :]
        return x + self.conv_2(nnx.silu(self.norm_2(y)))


class Denoiser(nnx.Module):
    """An image and a time, each of a batch, to the noise in the image."""

    def __init__(self, blocks: int, width: int, groups: int, heads: int, rngs: nnx.Rngs) -> None:
        self.width = width
        self.stem = nnx.Conv(3, width, (3, 3), rngs=rngs)
        self.time_1 = nnx.Linear(width, 4 * width, rngs=rngs)
        self.time_2 = nnx.Linear(4 * width, 4 * width, rngs=rngs)
        self.blocks = nnx.List(Residual(4 * width, width, groups, rngs) for _ in range(blocks))
        self.norm = nnx.GroupNorm(width, num_groups=groups, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.last = nnx.Conv(width, 3, (3, 3), rngs=rngs)

    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        t = self.time_2(nnx.silu(self.time_1(embedded(time, self.width))))
        x = self.stem(x)
        for block in self.blocks:
            x = block(x, t)
        y = self.norm(x).reshape(x.shape[0], -1, self.width)
        x = x + self.attention(y).reshape(x.shape)
        return self.last(nnx.silu(x))


def build(
    blocks: int = 4, width: int = 16, groups: int = 4, heads: int = 2, side: int = 8
) -> WholeModel:
    """The model, its batch symbolic."""
    return WholeModel(
        nnx_module(lambda rngs: Denoiser(blocks, width, groups, heads, rngs)),
        (f"f32[B,{side},{side},3]", "i32[B]"),
        inputs=lambda rng, n: (
            rng.standard_normal((n["B"], side, side, 3)).astype("float32"),
            rng.integers(0, 1000, n["B"]).astype("int32"),
        ),
    )
