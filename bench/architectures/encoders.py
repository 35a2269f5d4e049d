"""Encoders of text."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from torch import nn

from bench.architectures.network import Call, Names, Network, Size, bert_like, tokens_of


def _encoder(kind: str, size: Size, masked: bool = True, **given: Any) -> Network:
    config = getattr(hf, f"{kind}Config")(**given)
    model = getattr(hf, f"{kind}Model")(config)
    inputs, dims = tokens_of(size, masked)
    return Network(Call(model, tuple(dims), "last_hidden_state"), inputs, dims)


def bert(size: Size) -> Network:
    return _encoder("Bert", size, **bert_like(size))


def bert_unmasked(size: Size) -> Network:
    return _encoder("Bert", size, masked=False, **bert_like(size))


def roberta(size: Size) -> Network:
    return _encoder("Roberta", size, **bert_like(size))


def distilbert(size: Size) -> Network:
    return _encoder(
        "DistilBert",
        size,
        vocab_size=size.words,
        dim=size.width,
        n_layers=size.depth(6),
        n_heads=size.heads,
        hidden_dim=4 * size.width,
    )


def t5_encoder(size: Size) -> Network:
    config = hf.T5Config(
        vocab_size=size.words,
        d_model=size.width,
        d_kv=size.width // size.heads,
        d_ff=4 * size.width,
        num_layers=size.depth(6),
        num_heads=size.heads,
    )
    inputs, dims = tokens_of(size)
    return Network(Call(hf.T5EncoderModel(config), tuple(dims), "last_hidden_state"), inputs, dims)


class _Padded(nn.Module):
    """``nn.TransformerEncoder``, and a decoder behind it, on rows of which some are padding."""

    def __init__(self, size: Size, decoder: bool) -> None:
        super().__init__()
        given = (size.width, size.heads, 4 * size.width)
        layer = nn.TransformerEncoderLayer(*given, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, size.depth(6), enable_nested_tensor=False)
        last = nn.TransformerDecoderLayer(*given, batch_first=True)
        self.decoder = nn.TransformerDecoder(last, size.depth(6)) if decoder else None

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        rows = self.encoder(x, src_key_padding_mask=hidden)
        if self.decoder is None:
            return rows
        return self.decoder(x, rows, memory_key_padding_mask=hidden)


def _padded(size: Size, decoder: bool) -> Network:
    torch.backends.mha.set_fastpath_enabled(False)  # exporters have no operator for it
    hidden = torch.zeros(2, size.length, dtype=torch.bool)
    hidden[1, -3:] = True
    inputs = (torch.randn(2, size.length, size.width), hidden)
    dims: Names = {"x": ("batch", "length", None), "hidden": ("batch", "length")}
    return Network(_Padded(size, decoder), inputs, dims)


def torch_encoder(size: Size) -> Network:
    return _padded(size, decoder=False)


def torch_decoder(size: Size) -> Network:
    return _padded(size, decoder=True)


class _Tagger(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(99, width)
        self.rows = nn.LSTM(width, width, layers, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * width, 9)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.tags(self.rows(self.words(tokens))[0])


def lstm(size: Size) -> Network:
    inputs, dims = tokens_of(size, masked=False)
    return Network(_Tagger(size.width, size.depth(2)), inputs, dims)
