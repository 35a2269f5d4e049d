"""ResNet-50 in flax linen at inference; ``max_pool`` in either spelling."""

from __future__ import annotations

from functools import partial

import flax.linen as nn
import jax
from whole_models.whole import WholeModel, linen_variables

STAGES = (3, 4, 6, 3)
Norm = partial(nn.BatchNorm, use_running_average=True)


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a residual, which is projected where shapes differ."""

    features: int
    strides: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = nn.relu(Norm()(nn.Conv(self.features, (1, 1), use_bias=False)(x)))
        y = nn.Conv(self.features, (3, 3), (self.strides,) * 2, use_bias=False)(y)
        y = nn.relu(Norm()(y))
        y = Norm()(nn.Conv(4 * self.features, (1, 1), use_bias=False)(y))
        if x.shape != y.shape:
            x = nn.Conv(4 * self.features, (1, 1), (self.strides,) * 2, use_bias=False)(x)
            x = Norm()(x)
        return nn.relu(x + y)


class ResNet50(nn.Module):
    """Images, channels last, to the logits of classes."""

    width: int
    classes: int
    by_keyword: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(Norm()(nn.Conv(self.width, (7, 7), (2, 2), use_bias=False)(x)))
        if self.by_keyword:
            x = nn.max_pool(x, window_shape=(3, 3), strides=(2, 2), padding="SAME")
        else:
            x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage, blocks in enumerate(STAGES):
            for block in range(blocks):
                strides = 2 if stage and not block else 1
                x = Bottleneck(self.width << stage, strides)(x)
        return nn.Dense(self.classes)(x.mean((1, 2)))


def build(
    width: int = 4, classes: int = 10, side: int = 64, by_keyword: bool = False
) -> WholeModel:
    """The model with its variables at hand, its batch symbolic."""
    model = ResNet50(width, classes, by_keyword)
    variables = linen_variables(model, 1, side, side, 3)
    return WholeModel(lambda x: model.apply(variables, x), (f"f32[B,{side},{side},3]",))
