"""Decoders of text: whole prompts, and one step with the keys and values of the past."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn

from bench.architectures.network import Call, Names, Network, Size, Step, tokens_of


def decoder(model: nn.Module, size: Size, masked: bool = False) -> Network:
    inputs, dims = tokens_of(size, masked)
    return Network(Call(model, tuple(dims), "logits", use_cache=False), inputs, dims)


def step(model: nn.Module, size: Size, layers: int, heads: int, head: int) -> Network:
    past = 5
    tokens = torch.randint(0, size.words - 9, (2, 1))
    mask = torch.ones(2, past + 1, dtype=torch.int64)
    dims: Names = {"input_ids": ("batch", None), "attention_mask": ("batch", "total")}
    caches = []
    for layer in range(layers):
        for kind in ("key", "value"):
            dims[f"past_{kind}_{layer}"] = ("batch", None, "past", None)
            caches.append(torch.randn(2, heads, past, head))
    return Network(Step(model, layers), (tokens, mask, *caches), dims)


def _gpt2(size: Size) -> tuple[nn.Module, int]:
    layers = size.depth(12)
    config = hf.GPT2Config(
        vocab_size=size.words,
        n_positions=size.positions,
        n_embd=size.width,
        n_layer=layers,
        n_head=size.heads,
    )
    return hf.GPT2LMHeadModel(config), layers


def gpt2(size: Size) -> Network:
    return decoder(_gpt2(size)[0], size)


def gpt2_masked(size: Size) -> Network:
    return decoder(_gpt2(size)[0], size, masked=True)


def gpt2_cache(size: Size) -> Network:
    model, layers = _gpt2(size)
    return step(model, size, layers, size.heads, size.width // size.heads)


def _rotary(kind: str, size: Size, published: int, **more: Any) -> tuple[nn.Module, int]:
    layers = size.depth(published)
    config = getattr(hf, f"{kind}Config")(
        vocab_size=size.words,
        hidden_size=size.width,
        intermediate_size=4 * size.width,
        num_hidden_layers=layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads // 2,
        head_dim=size.width // size.heads,
        max_position_embeddings=size.positions,
        pad_token_id=0,
        **more,
    )
    return getattr(hf, f"{kind}ForCausalLM")(config), layers


_ROTARY: dict[str, tuple[str, int]] = {
    "llama": ("Llama", 16),
    "qwen2": ("Qwen2", 24),
    "qwen3": ("Qwen3", 28),
    "gemma": ("Gemma", 18),
    "gemma2": ("Gemma2", 26),
    "mistral": ("Mistral", 32),
}


def _rotary_maker(kind: str, published: int) -> Callable[[Size], Network]:
    return lambda size: decoder(_rotary(kind, size, published)[0], size)


def _rotary_step(kind: str, published: int) -> Callable[[Size], Network]:
    def made(size: Size) -> Network:
        model, layers = _rotary(kind, size, published)
        return step(model, size, layers, size.heads // 2, size.width // size.heads)

    return made


def phi(size: Size) -> Network:
    """Rotary positions for a part of each head, and biases."""
    layers = size.depth(24)
    config = hf.PhiConfig(
        vocab_size=size.words,
        hidden_size=size.width,
        intermediate_size=4 * size.width,
        num_hidden_layers=layers,
        num_attention_heads=size.heads,
        partial_rotary_factor=0.5,
        max_position_embeddings=size.positions,
    )
    return decoder(hf.PhiForCausalLM(config), size)


def gptj(size: Size) -> Network:
    """Rotary positions in interleaved pairs."""
    config = hf.GPTJConfig(
        vocab_size=size.words,
        n_embd=size.width,
        n_layer=size.depth(28),
        n_head=size.heads,
        rotary_dim=size.width // size.heads // 2,
        n_positions=size.positions,
    )
    return decoder(hf.GPTJForCausalLM(config), size)


def mamba(size: Size) -> Network:
    config = hf.MambaConfig(
        vocab_size=size.words,
        hidden_size=size.width,
        num_hidden_layers=size.depth(24),
        state_size=8,
    )
    return decoder(hf.MambaForCausalLM(config), size)


ROTARY: dict[str, Callable[[Size], Network]] = {
    **{name: _rotary_maker(*row) for name, row in _ROTARY.items()},
    **{f"{name}_cache": _rotary_step(*_ROTARY[name]) for name in ("llama", "qwen3", "gemma2")},
}
"""Decoders with rotary positions and grouped heads, by name."""
