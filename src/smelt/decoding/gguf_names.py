"""The weights of a GGUF file under the names that Hugging Face's transformers give them.

llama.cpp renames weights, and changes the numbers of some::

    blk.0.attn_q.weight  ->  model.layers.0.self_attn.q_proj.weight

The rows of queries and keys of Llama stand in another order, and the weights of Gemma's norms are
larger by 1. Both changes are undone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError, listed
from smelt.frontends.weights.gguf import BLOCKS, Blocks, Gguf, quantized

OUTER: Mapping[str, str] = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
"""Names outside of layers, without ``.weight`` or ``.bias``."""

LAYER: Mapping[str, str] = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names in a layer, after ``blk.N.`` and ``model.layers.N.``."""

_FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}

ARCHITECTURES: Mapping[str, Mapping[str, str]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "gemma": {},
    "gemma2": _FOUR_NORMS,
    "gemma3": _FOUR_NORMS,
    "phi3": {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
    "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
}
"""By the name of an architecture, the names of its layers that differ from ``LAYER``."""

COMPUTED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tensors that an exported decoder has as constants of its own."""

_NAME = re.compile(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)")


def renamed(gguf: Gguf, path: Path) -> dict[str, ir.TensorProtocol]:
    """Return the tensors of ``gguf``, read from ``path``, by the names of transformers.

    Raises UsageError E805 for an architecture or a tensor whose name is not known.
    """
    architecture = str(gguf.metadata.get("general.architecture"))
    layer_names = ARCHITECTURES.get(architecture)
    if layer_names is None:
        raise UsageError(
            "E805",
            f"the names in {path.name!r} are not known",
            why=f"its architecture is {architecture}; known are {', '.join(ARCHITECTURES)}",
            fix="export the decoder with its weights, and leave the file out",
        )
    tensors: dict[str, ir.TensorProtocol] = {}
    unknown = []
    for name, tensor in gguf.tensors.items():
        if name in COMPUTED:
            continue
        new_name = _name(name, {**LAYER, **layer_names})
        if new_name is None:
            unknown.append(name)
        else:
            tensors[new_name] = _restored(tensor, name, architecture, gguf.metadata)
    if unknown:
        raise UsageError(
            "E805",
            f"{path.name!r} has tensors that a decoder of {architecture} lacks",
            why=f"nothing is known of {listed(sorted(unknown), 6)}",
            fix="export the decoder with its weights, and leave the file out",
        )
    return tensors


def _name(name: str, layer_names: Mapping[str, str]) -> str | None:
    """Return the name of transformers for ``name``, None for an unknown one."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    layer, part, kind = match.groups()
    known = (OUTER if layer is None else layer_names).get(part)
    if known is None:
        return None
    return f"{known}.{kind}" if layer is None else f"model.layers.{layer}.{known}.{kind}"


def _restored(
    tensor: ir.TensorProtocol, name: str, architecture: str, metadata: Mapping[str, Any]
) -> ir.TensorProtocol:
    """Return ``tensor``, called ``name`` in the file, with the numbers that transformers has."""
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return ir.Tensor(tensor.numpy().astype(np.float32) - np.float32(1))
    part = name.split(".")[-2]
    if architecture != "llama" or part not in ("attn_q", "attn_k"):
        return tensor
    heads = metadata.get("llama.attention.head_count")
    if part == "attn_k":
        heads = metadata.get("llama.attention.head_count_kv", heads)
    rows = next(iter(tensor.shape.numpy()), 1)
    if not isinstance(heads, int) or heads < 1 or rows % (2 * heads):
        raise UsageError(
            "E805",
            f"the rows of {name!r} have no known order",
            why=f"it has {rows} rows for {heads} heads",
            fix="copy or download the file again",
        )
    blocks = tensor.meta.get(BLOCKS)
    if isinstance(blocks, Blocks):
        return quantized(Blocks(blocks.type, halves_first(blocks.data, heads)), tensor.name)
    return ir.Tensor(halves_first(tensor.numpy(), heads), dtype=tensor.dtype)


def halves_first(rows: np.ndarray, heads: int) -> np.ndarray:
    """Return ``rows`` [heads * D, ...] in the order of transformers.

    A rotation turns pairs of rows of a head. In a GGUF file, rows 2 i and 2 i + 1 are a pair; in
    transformers, rows i and i + D / 2.
    """
    pairs = rows.reshape(heads, len(rows) // heads // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)
