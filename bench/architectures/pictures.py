"""Networks of pictures, and of what is like them: spectra, and pictures beside text."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from torch import nn

from bench.architectures.network import Call, Names, Network, Size, bert_like, tokens_of


def picture(model: nn.Module, size: Size, result: str, side: int | None = None) -> Network:
    side = side or size.image
    image = torch.randn(2, 3, side, side)
    dims: Names = {"pixel_values": ("batch", None, None, None)}
    return Network(Call(model, ("pixel_values",), result), (image,), dims)


def vit_like(size: Size) -> dict[str, Any]:
    return {
        "hidden_size": size.width,
        "num_hidden_layers": size.depth(12),
        "num_attention_heads": size.heads,
        "intermediate_size": 4 * size.width,
        "image_size": size.image,
        "patch_size": 16,
    }


def vit(size: Size) -> Network:
    model = hf.ViTForImageClassification(hf.ViTConfig(**vit_like(size)))
    return picture(model, size, "logits")


def deit(size: Size) -> Network:
    config = hf.DeiTConfig(**vit_like(size))
    return picture(hf.DeiTForImageClassification(config), size, "logits")


def swin(size: Size) -> Network:
    depths = [2, 2, 6, 2] if size.layers is None else [2, 2]
    stages = len(depths)
    config = hf.SwinConfig(
        image_size=size.image,
        patch_size=2,
        window_size=4,
        embed_dim=max(size.width // 2, 32),
        depths=depths,
        num_heads=[2 * 2**i for i in range(stages)],
    )
    return picture(hf.SwinForImageClassification(config), size, "logits")


def convnext(size: Size) -> Network:
    depths = [3, 3, 9, 3] if size.layers is None else [2, 2]
    config = hf.ConvNextConfig(
        depths=depths,
        hidden_sizes=[max(size.width // 2, 16) * 2**i for i in range(len(depths))],
        num_stages=len(depths),
        image_size=size.image,
    )
    return picture(hf.ConvNextForImageClassification(config), size, "logits")


def efficientnet(size: Size) -> Network:
    small: dict[str, Any] = {
        "in_channels": [32, 16],
        "out_channels": [16, 24],
        "kernel_sizes": [3, 3],
        "strides": [1, 2],
        "num_block_repeats": [1, 2],
        "expand_ratios": [1, 6],
        "depthwise_padding": [],
    }
    full: dict[str, Any] = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}
    given = full if size.layers is None else {**full, **small}
    config = hf.EfficientNetConfig(image_size=size.image, **given)
    return picture(hf.EfficientNetForImageClassification(config), size, "logits")


def mobilenet_v1(size: Size) -> Network:
    config = hf.MobileNetV1Config(image_size=size.image, depth_multiplier=0.25)
    return picture(hf.MobileNetV1ForImageClassification(config), size, "logits")


def mobilenet_v2(size: Size) -> Network:
    config = hf.MobileNetV2Config(image_size=size.image, depth_multiplier=0.35)
    return picture(hf.MobileNetV2ForImageClassification(config), size, "logits")


def resnet(size: Size) -> Network:
    depths = [3, 4, 6, 3] if size.layers is None else [1, 2]
    config = hf.ResNetConfig(
        embedding_size=16,
        depths=depths,
        hidden_sizes=[32 * 2**i for i in range(len(depths))],
    )
    return picture(hf.ResNetForImageClassification(config), size, "logits")


def segformer(size: Size) -> Network:
    depths = [2, 2, 2, 2] if size.layers is None else [1, 1]
    stages = len(depths)
    config = hf.SegformerConfig(
        num_encoder_blocks=stages,
        depths=depths,
        sr_ratios=[8, 4, 2, 1][:stages],
        hidden_sizes=[32, 64, 160, 256][:stages],
        num_attention_heads=[1, 2, 5, 8][:stages],
        patch_sizes=[7, 3, 3, 3][:stages],
        strides=[4, 2, 2, 2][:stages],
        mlp_ratios=[4] * stages,
        decoder_hidden_size=64,
    )
    return picture(hf.SegformerForSemanticSegmentation(config), size, "logits")


def detr(size: Size) -> Network:
    layers = size.depth(6)
    config = hf.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=hf.ResNetConfig(
            embedding_size=16,
            depths=[1, 1],
            hidden_sizes=[16, 32],
            out_features=["stage2"],
        ),
        num_queries=10,
        d_model=size.width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=4 * size.width,
        decoder_ffn_dim=4 * size.width,
    )
    return picture(hf.DetrForObjectDetection(config), size, "logits")


def clip(size: Size) -> Network:
    text = hf.CLIPTextConfig(**bert_like(size), projection_dim=32, eos_token_id=size.words - 1)
    vision = hf.CLIPVisionConfig(**vit_like(size), projection_dim=32)
    config = hf.CLIPConfig(
        text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=32
    )
    (tokens, mask), dims = tokens_of(size)
    tokens[:, -4] = size.words - 1
    image = torch.randn(2, 3, size.image, size.image)
    names: Names = {
        "input_ids": dims["input_ids"],
        "pixel_values": ("images", None, None, None),
        "attention_mask": dims["attention_mask"],
    }
    call = Call(hf.CLIPModel(config), tuple(names), "logits_per_text")
    return Network(call, (tokens, image, mask), names)


def whisper_encoder(size: Size) -> Network:
    config = hf.WhisperConfig(
        d_model=size.width,
        encoder_layers=size.depth(4),
        encoder_attention_heads=size.heads,
        encoder_ffn_dim=4 * size.width,
        decoder_attention_heads=size.heads,
        num_mel_bins=16,
        max_source_positions=20,
    )
    encoder = hf.WhisperModel(config).encoder
    call = Call(encoder, ("input_features",), "last_hidden_state")
    return Network(call, (torch.randn(2, 16, 40),), {"input_features": ("batch", None, None)})
