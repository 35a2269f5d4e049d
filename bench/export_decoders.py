"""Export decoders without and with past, with inputs and outputs called as optimum calls them.

    python -m bench.export_decoders FOLDER [--only gpt2,t5] [--layers 2] [--width 64] [--words 99]

Each network gets a folder with decoder_model.onnx and decoder_with_past_model.onnx, those with an
encoder also encoder_model.onnx. ``smelt merge`` makes one file of both decoders. Needs torch and
transformers, in an environment of their own.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from torch import nn

from bench.architectures.network import Size
from bench.export_models import forget_places

Axes = dict[str, dict[int, str]]
STEP, PAST, FRAMES = 4, 7, 9
"""Tokens of the first step, tokens of the past, and states of the encoder in the traced inputs."""


def flat(cache: Any) -> list[torch.Tensor]:
    """Keys and values of each layer; those of the decoder before those of the encoder."""
    crossed = hasattr(cache, "cross_attention_cache")
    own = cache.self_attention_cache if crossed else cache
    rows = [[layer.keys, layer.values] for layer in own.layers]
    if crossed:
        for row, layer in zip(rows, cache.cross_attention_cache.layers, strict=True):
            row += [layer.keys, layer.values]
    return [tensor for row in rows for tensor in row]


def cache_of(tensors: Sequence[torch.Tensor], kinds: int) -> Any:
    """The cache of ``tensors``, of which each layer has ``2 * kinds``."""
    caches = [
        hf.DynamicCache(
            [tuple(tensors[at : at + 2]) for at in range(2 * kind, len(tensors), 2 * kinds)]
        )
        for kind in range(kinds)
    ]
    return caches[0] if kinds == 1 else hf.EncoderDecoderCache(*caches)


class Decoder(nn.Module):
    """A decoder alone: tokens and their mask, then the past if there is one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> Any:
        cache = cache_of(past, 1) if past else None
        answer = self.model(tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (answer.logits, *flat(answer.past_key_values))


class Seq2SeqDecoder(nn.Module):
    """The decoder of an encoder's states; with a past it returns its own keys and values only."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, states: torch.Tensor, *past: torch.Tensor) -> Any:
        cache = cache_of(past, 2) if past else None
        answer = self.model(
            encoder_outputs=(states,),
            decoder_input_ids=tokens,
            past_key_values=cache,
            use_cache=True,
        )
        present = flat(answer.past_key_values)
        own = [each for index, each in enumerate(present) if not past or index % 4 < 2]
        return (answer.logits, *own)


class Encoder(nn.Module):
    """The encoder, which returns its states alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.encoder(inputs).last_hidden_state


def gpt2(size: Size) -> nn.Module:
    return hf.GPT2LMHeadModel(
        hf.GPT2Config(
            vocab_size=size.words,
            n_positions=size.positions,
            n_embd=size.width,
            n_layer=size.depth(12),
            n_head=size.heads,
        )
    )


def t5(size: Size) -> nn.Module:
    return hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=size.words,
            d_model=size.width,
            d_kv=size.width // size.heads,
            d_ff=4 * size.width,
            num_layers=size.depth(6),
            num_heads=size.heads,
        )
    )


def bart(size: Size) -> nn.Module:
    return hf.BartForConditionalGeneration(
        hf.BartConfig(**_both(size), max_position_embeddings=size.positions)
    )


def whisper(size: Size) -> nn.Module:
    return hf.WhisperForConditionalGeneration(
        hf.WhisperConfig(
            **_both(size),
            num_mel_bins=8,
            max_source_positions=FRAMES,
            max_target_positions=size.positions,
            **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
        )
    )


def _both(size: Size) -> dict[str, int]:
    """The sizes of encoder and decoder as BART and Whisper name them."""
    sides = ("encoder", "decoder")
    return {
        "vocab_size": size.words,
        "d_model": size.width,
        **{f"{side}_layers": size.depth(6) for side in sides},
        **{f"{side}_attention_heads": size.heads for side in sides},
        **{f"{side}_ffn_dim": 4 * size.width for side in sides},
    }


NETWORKS: dict[str, Callable[[Size], nn.Module]] = {
    "gpt2": gpt2,
    "t5": t5,
    "bart": bart,
    "whisper": whisper,
}


def write(
    path: Path, module: nn.Module, inputs: dict[str, torch.Tensor], outputs: list[str], axes: Axes
) -> None:
    """Export ``module``; each of ``axes`` names the open dims of an input or output."""
    torch.onnx.export(
        module.eval(),
        tuple(inputs.values()),
        str(path),
        input_names=list(inputs),
        output_names=outputs,
        dynamic_axes={name: dims for name, dims in axes.items() if name in (*inputs, *outputs)},
        opset_version=17,
        dynamo=False,
    )
    forget_places(path)


def export(name: str, size: Size, folder: Path) -> None:
    """Write the files of one network."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = NETWORKS[name](size)
    alone = name == "gpt2"
    ends = [
        f"{layer}{kind}.{what}"
        for layer in range(size.depth(12 if alone else 6))
        for kind in ([""] if alone else [".decoder", ".encoder"])
        for what in ("key", "value")
    ]
    if not alone:
        write_encoder(model, folder, name == "whisper")
    for has_past in (False, True):
        inputs = inputs_of(size, ends if has_past else [], alone)
        own = [end for end in ends if not has_past or "encoder" not in end]
        outputs = ["logits", *(f"present.{end}" for end in own)]
        path = folder / f"decoder_{'with_past_' * has_past}model.onnx"
        decoder = (Decoder if alone else Seq2SeqDecoder)(model)
        write(path, decoder, inputs, outputs, _axes(ends, has_past, name == "whisper"))


def write_encoder(model: nn.Module, folder: Path, of_sound: bool) -> None:
    """Write the encoder, of tokens or of the frames of a spectrogram."""
    inputs = {"input_ids": torch.ones(2, FRAMES, dtype=torch.int64)}
    open_dims = {0: "batch_size", 1: "encoder_length"}
    if of_sound:
        inputs, open_dims = {"input_features": torch.randn(2, 8, 2 * FRAMES)}, {0: "batch_size"}
    axes: Axes = dict.fromkeys((*inputs, "last_hidden_state"), open_dims)
    write(folder / "encoder_model.onnx", Encoder(model), inputs, ["last_hidden_state"], axes)


def inputs_of(size: Size, past: list[str], alone: bool) -> dict[str, torch.Tensor]:
    """The inputs of a decoder, with the keys and values ``past``; ``alone`` has no encoder."""
    length = 1 if past else STEP
    inputs = {"input_ids": torch.ones(2, length, dtype=torch.int64)}
    if alone:
        total = PAST + 1 if past else STEP
        inputs["attention_mask"] = torch.ones(2, total, dtype=torch.int64)
    else:
        inputs["encoder_hidden_states"] = torch.randn(2, FRAMES, size.width)
    for end in past:
        tokens = FRAMES if "encoder" in end else PAST
        shape = (2, size.heads, tokens, size.width // size.heads)
        inputs[f"past_key_values.{end}"] = torch.randn(shape)
    return inputs


def _axes(ends: list[str], has_past: bool, fixed: bool) -> Axes:
    """The open dims of inputs and outputs, with the names that optimum gives them."""
    total = "past_sequence_length + 1" if has_past else "sequence_length"
    tokens = {0: "batch_size"} if has_past else {0: "batch_size", 1: "sequence_length"}
    states = {0: "batch_size"} if fixed else {0: "batch_size", 1: "encoder_length"}
    axes: Axes = {
        "input_ids": tokens,
        "logits": tokens,
        "attention_mask": {0: "batch_size", 1: total},
        "encoder_hidden_states": states,
    }
    for end in ends:
        past, present = "past_sequence_length", total
        if "encoder" in end:
            past = present = "encoder_length_out" if has_past else "encoder_length"
        axes[f"past_key_values.{end}"] = {0: "batch_size", 2: past}
        axes[f"present.{end}"] = {0: "batch_size", 2: present}
    return axes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(NETWORKS))
    for field in dataclasses.fields(Size):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    size = Size(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Size)})
    for name in options.only.split(","):
        export(name, size, options.folder / name)
        print(f"{name}: written", flush=True)


if __name__ == "__main__":
    main()
