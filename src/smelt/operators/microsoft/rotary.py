"""``RotaryEmbedding`` of the runtime's domain: heads rotated by the angles of their positions."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attributes, Computed, Given, int_of
from smelt.operators.inputs import present
from smelt.operators.microsoft.declared import Values, floats, ints, like_first, operator


def turned(heads: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool) -> np.ndarray:
    """Rotate ``[B,N,S,D]`` by ``[B,1,S,R/2]``; the elements after the first R numbers stay
    unchanged."""
    size = 2 * cos.shape[-1]
    part, rest = heads[..., :size], heads[..., size:]
    if interleaved:
        a, b = part[..., 0::2], part[..., 1::2]
        found = np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(part.shape)
    else:
        a, b = np.split(part, 2, -1)
        found = np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
    return np.concatenate([found, rest], -1).astype(heads.dtype)


def reference(inputs: Given, attributes: Attributes) -> Computed:
    """Compute the rotation of x: B,H,S,D or B,S,H*D."""
    x, positions, cos, sin = present(inputs)
    heads = x
    if x.ndim == 3:
        batch, length, width = x.shape
        count = int_of(attributes, "num_heads") or width // (2 * cos.shape[-1])
        heads = x.reshape(batch, length, count, -1).transpose(0, 2, 1, 3)
    length = heads.shape[2]
    places = positions.astype(np.int64)
    if positions.size == 1:
        places = positions.reshape(1, 1) + np.arange(length)[None]
    cosines, sines = cos[places][:, None], sin[places][:, None]
    result = turned(heads, cosines, sines, bool(attributes["interleaved"]))
    return (result if x.ndim == 4 else result.transpose(0, 2, 1, 3).reshape(x.shape),)


def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build ONNX's own RotaryEmbedding if positions are given one by one."""
    x, positions, cos, sin = present(inputs)
    rank = None if positions.shape is None else len(positions.shape)
    heads = int_of(attributes, "num_heads")
    if rank != 2 or x.shape is None or attributes["is_packed_batching"]:
        return None
    if len(x.shape) == 3 and not heads:
        return None
    size = int_of(attributes, "rotary_embedding_dim")
    return (
        b.op(
            "RotaryEmbedding",
            x,
            cos,
            sin,
            positions,
            interleaved=int_of(attributes, "interleaved"),
            num_heads=heads or None,
            rotary_embedding_dim=size or None,
        ),
    )


ROTARY_EMBEDDING = operator(
    "RotaryEmbedding",
    "heads turned by the angles of their positions",
    inputs=("input", "position_ids", "cos_cache", "sin_cache"),
    outputs=("output",),
    attributes=(
        *ints(interleaved=0, num_heads=0, rotary_embedding_dim=0, is_packed_batching=0),
        *floats(scale=1.0),
    ),
    infer=like_first(),
    reference=reference,
    body=body,
    opset=23,
)
OPERATORS = (ROTARY_EMBEDDING,)
