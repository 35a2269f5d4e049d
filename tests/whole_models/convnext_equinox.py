"""ConvNeXt-T in equinox: depthwise convolutions, channels first, norms over the channels."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from whole_models.whole import WholeModel, equinox_module

STAGES = (3, 3, 9, 3)


class ChannelNorm(eqx.Module):
    """A layer norm over the channels of an image, at each of its places."""

    norm: eqx.nn.LayerNorm

    def __init__(self, channels: int) -> None:
        self.norm = eqx.nn.LayerNorm(channels, eps=1e-6)

    def __call__(self, x: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        places = jax.vmap(jax.vmap(self.norm, 1, 1), 1, 1)
        return places(x)


class Block(eqx.Module):
    """A depthwise 7x7 convolution and an MLP of 1x1 convolutions, scaled, beside a residual."""

    depthwise: eqx.nn.Conv2d
    norm: ChannelNorm
    expand: eqx.nn.Conv2d
    contract: eqx.nn.Conv2d
    scale: jax.Array

    def __init__(self, channels: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.depthwise = eqx.nn.Conv2d(
            channels, channels, 7, padding=3, groups=channels, key=keys[0]
        )
        self.norm = ChannelNorm(channels)
        self.expand = eqx.nn.Conv2d(channels, 4 * channels, 1, key=keys[1])
        self.contract = eqx.nn.Conv2d(4 * channels, channels, 1, key=keys[2])
        self.scale = jnp.full((channels, 1, 1), 0.5)

    def __call__(self, x: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        y = self.expand(self.norm(self.depthwise(x)))
        return x + self.scale * self.contract(jax.nn.gelu(y, approximate=False))


def _layers(width: int, classes: int, key: jax.Array) -> list[eqx.Module]:
    keys = iter(jax.random.split(key, 64))
    layers: list[eqx.Module] = [eqx.nn.Conv2d(3, width, 4, 4, key=next(keys)), ChannelNorm(width)]
    for stage, blocks in enumerate(STAGES):
        channels = width << stage
        if stage:
            layers.append(ChannelNorm(channels // 2))
            layers.append(eqx.nn.Conv2d(channels // 2, channels, 2, 2, key=next(keys)))
        layers.extend(Block(channels, next(keys)) for _ in range(blocks))
    layers.append(eqx.nn.Lambda(lambda x: x.mean((1, 2))))
    layers.append(eqx.nn.LayerNorm(channels))
    layers.append(eqx.nn.Linear(channels, classes, key=next(keys)))
    return layers


def build(width: int = 4, classes: int = 10, side: int = 64) -> WholeModel:
    """The model mapped over a symbolic batch."""
    model = equinox_module(lambda key: eqx.nn.Sequential(_layers(width, classes, key)))
    return WholeModel(jax.vmap(model), (f"f32[B,3,{side},{side}]",))
