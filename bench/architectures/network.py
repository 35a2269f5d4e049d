"""What a network is to the exporters, and what most of them are made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import nn

Names = dict[str, tuple[str | None, ...]]
"""The dynamic dims of each input by name, None for those that stay numbers."""


@dataclass(frozen=True)
class Size:
    """How large a network is made; ``layers`` is None for as many as the published one has."""

    layers: int | None = 2
    width: int = 64
    heads: int = 4
    length: int = 12
    image: int = 64
    words: int = 99
    positions: int = 512

    def depth(self, published: int) -> int:
        """How many layers to make of a network that is published with that many."""
        return published if self.layers is None else self.layers


@dataclass(frozen=True)
class Network:
    """A module that takes and gives tensors only, with inputs and names for their dims."""

    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    dims: Names

    @property
    def plain_inputs(self) -> int | None:
        """How many inputs stand before those that the module takes as ``*args``; None for all."""
        return {Call: 0, Step: 2}.get(type(self.module))


class Call(nn.Module):
    """``model`` called by keywords, of whose answer one tensor is the result."""

    def __init__(self, model: nn.Module, keywords: tuple[str, ...], result: str, **fixed: Any):
        super().__init__()
        self.model, self.keywords, self.result, self.fixed = model, keywords, result, fixed

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.keywords, tensors, strict=True))
        answer = self.model(**given, **self.fixed)
        return getattr(answer, self.result)


class Step(nn.Module):
    """One step of decoding: tokens, a mask and the keys and values of the past."""

    def __init__(self, model: nn.Module, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> Any:
        cache = hf.DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        answer = self.model(tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
        present = [each for layer in cache.layers for each in (layer.keys, layer.values)]
        return (answer.logits, *present)


def tokens_of(size: Size, masked: bool = True) -> tuple[tuple[torch.Tensor, ...], Names]:
    tokens = torch.randint(0, size.words - 9, (2, size.length))
    both: tuple[str | None, ...] = ("batch", "length")
    if not masked:
        return (tokens,), {"input_ids": both}
    mask = torch.ones(2, size.length, dtype=torch.int64)
    mask[1, -3:] = 0
    return (tokens, mask), {"input_ids": both, "attention_mask": both}


def bert_like(size: Size, published: int = 12) -> dict[str, Any]:
    return {
        "vocab_size": size.words,
        "hidden_size": size.width,
        "num_hidden_layers": size.depth(published),
        "num_attention_heads": size.heads,
        "intermediate_size": 4 * size.width,
        "max_position_embeddings": size.positions,
    }
