"""Networks of the transformers library and PyTorch, at any size, with seeded random weights.

Nothing is downloaded: each network is made from a configuration. Needs torch and transformers,
which smelt itself and its tests do not.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.architectures import decoders, encoders, pictures
from bench.architectures.network import Network, Size
from bench.architectures.unet import unet

ARCHITECTURES: dict[str, Callable[[Size], Network]] = {
    maker.__name__: maker
    for maker in (
        *(encoders.bert, encoders.bert_unmasked, encoders.distilbert, encoders.roberta),
        *(encoders.t5_encoder, encoders.lstm, encoders.torch_encoder, encoders.torch_decoder),
        *(decoders.gpt2, decoders.gpt2_masked),
        *(decoders.gpt2_cache, decoders.phi, decoders.gptj, decoders.mamba),
        *(pictures.vit, pictures.deit, pictures.swin, pictures.convnext, pictures.efficientnet),
        *(pictures.mobilenet_v1, pictures.mobilenet_v2, pictures.resnet, pictures.segformer),
        *(pictures.detr, pictures.clip, pictures.whisper_encoder, unet),
    )
} | decoders.ROTARY
"""By name; each is called with a size."""
