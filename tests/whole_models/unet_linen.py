"""U-Net in flax linen: skip connections, up again by resizing and by transposed convolution."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
from whole_models.whole import WholeModel, linen_variables


class Double(nn.Module):
    """Two convolutions."""

    features: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = nn.relu(nn.Conv(self.features, (3, 3))(x))
        return x


class UNet(nn.Module):
    """Images, channels last, to a mask of their size; every other step up is by resizing."""

    width: int
    depth: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        skips = []
        for level in range(self.depth):
            skips.append(Double(self.width << level)(x))
            x = nn.max_pool(skips[-1], (2, 2), strides=(2, 2))
        x = Double(self.width << self.depth)(x)
        for level in reversed(range(self.depth)):
            if level % 2:
                batch, height, width, channels = x.shape
                shape = (batch, 2 * height, 2 * width, channels)
                x = jax.image.resize(x, shape, "bilinear" if level % 4 == 1 else "nearest")
            else:
                x = nn.ConvTranspose(self.width << level, (2, 2), (2, 2))(x)
            x = Double(self.width << level)(jnp.concatenate([skips.pop(), x], axis=-1))
        return nn.sigmoid(nn.Conv(1, (1, 1))(x))


def build(width: int = 4, depth: int = 4, side: int = 32) -> WholeModel:
    """The model, its batch symbolic."""
    model = UNet(width, depth)
    variables = linen_variables(model, 1, side, side, 1)
    return WholeModel(lambda x: model.apply(variables, x), (f"f32[B,{side},{side},1]",))
