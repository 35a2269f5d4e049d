"""``RotaryEmbedding`` of the runtime's domain: heads rotated by the angles of their positions."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed, int_of
from smelt.operators.inputs import present
from smelt.operators.onnxruntime.microsoft.declared import (
    Values,
    floats,
    ints,
    like_first,
    operator,
)


def rotated_heads(
    heads: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool
) -> np.ndarray:
    """Return ``[B,N,S,D]`` rotated by ``[B,1,S,R/2]``; elements after the first R are unchanged."""
    size = 2 * cos.shape[-1]
    part, unrotated = heads[..., :size], heads[..., size:]
    if interleaved:
        a, b = part[..., 0::2], part[..., 1::2]
        rotated = np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(part.shape)
    else:
        a, b = np.split(part, 2, -1)
        rotated = np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
    return np.concatenate([rotated, unrotated], -1).astype(heads.dtype)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the rotated heads of x, which is B,H,S,D or B,S,H*D, in its layout."""
    x, positions, cos, sin = present(inputs)
    heads = x
    if x.ndim == 3:
        batch, length, width = x.shape
        count = int_of(attributes, "num_heads") or width // (2 * cos.shape[-1])
        heads = x.reshape(batch, length, count, -1).transpose(0, 2, 1, 3)
    length = heads.shape[2]
    positions_of_rows = positions.astype(np.int64)
    if positions.size == 1:
        positions_of_rows = positions.reshape(1, 1) + np.arange(length)[None]
    cosines, sines = cos[positions_of_rows][:, None], sin[positions_of_rows][:, None]
    result = rotated_heads(heads, cosines, sines, bool(attributes["interleaved"]))
    return (result if x.ndim == 4 else result.transpose(0, 2, 1, 3).reshape(x.shape),)


def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build ONNX's RotaryEmbedding; None unless each row has its own position."""
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
    "heads rotated by the angles of their positions",
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
