"""Every whole model by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from whole_models import (
    cfd,
    convnext_equinox,
    diffusion_nnx,
    gpt_equinox,
    gpt_nnx,
    lstm,
    mamba,
    ppo,
    resnet_linen,
    train_step,
    unet_linen,
    vit_nnx,
)
from whole_models.whole import WholeModel

MODELS: dict[str, Callable[..., WholeModel]] = {
    "gpt_nnx": gpt_nnx.build,
    "gpt_equinox": gpt_equinox.build,
    "resnet50": resnet_linen.build,
    "resnet50_keywords": partial(resnet_linen.build, by_keyword=True),
    "convnext": convnext_equinox.build,
    "vit": vit_nnx.build,
    "lstm_linen": lstm.build,
    "lstm_nnx": lstm.build_nnx,
    "unet": unet_linen.build,
    "diffusion": diffusion_nnx.build,
    "mamba_scan": mamba.build,
    "mamba_parallel": partial(mamba.build, parallel=True),
    "ppo": ppo.build,
    "cfd": cfd.build,
    "train_step": train_step.build,
}
