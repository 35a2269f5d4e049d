"""``MultiHeadAttention``: softmax of scaled products of queries and keys, times the values.

Queries, keys and values are B,S,N*D; the past is B,N,P,D. A mask has one number per key, 0 for
hidden keys; a bias is added to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attributes, Computed, Result, int_of
from smelt.operators.inputs import filled, first, input_at
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator

HIDDEN = -10000.0
"""Default of the number that is added to the scores of masked keys."""


def infer(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return B,S,N*Dv, and present keys and values B,N,P+T,D where the parts are known."""
    query, key, value = first(inputs), input_at(inputs, 1), input_at(inputs, 2)
    past_key, past_value, written_rows = (input_at(inputs, index) for index in (6, 7, 8))
    heads = int_of(attributes, "num_heads")
    unknown = Result(query.dtype, None)
    shapes = [None if x is None or x.shape is None else x.shape.dims for x in (query, key, value)]
    if any(dims is None or len(dims) != 3 for dims in shapes):
        return (unknown,) * 4
    (batch, query_rows, _), (_, key_rows, key_width), (_, _, value_width) = (
        dims for dims in shapes if dims
    )
    output = Result(query.dtype, ir.Shape([batch, query_rows, value_width]))
    presents = []
    for past, width in ((past_key, key_width), (past_value, value_width)):
        if written_rows is not None:  # a buffer that the new keys are written into
            presents.append(unknown if past is None else Result(query.dtype, past.shape))
            continue
        past_rows: Dim | None = 0
        if past is not None:
            past_rows = past.shape[2] if past.shape is not None and len(past.shape) == 4 else None
        if past_rows is None or not isinstance(width, int):
            presents.append(unknown)
        else:
            shape = ir.Shape([batch, heads, key_rows + past_rows, width // heads])
            presents.append(Result(query.dtype, shape))
    return (output, *presents, unknown)


def _heads(x: np.ndarray, count: int) -> np.ndarray:
    """Return B,S,N*D as B,N,S,D; arrays with heads first are returned unchanged."""
    if x.ndim == 4:
        return x
    return x.reshape(*x.shape[:2], count, x.shape[2] // count).transpose(0, 2, 1, 3)


def visible_keys(mask: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the mask of scores B,N,S,T that ``mask`` keeps, broadcastable to the scores.

    ``mask`` has one number per key, or per query and key. Or it has the length of each of B
    sequences, optionally followed by their starts. Raises ValueError for other masks.
    """
    batch, keys = scores.shape[0], scores.shape[-1]
    if mask.ndim == 1 and len(mask) in (batch, 2 * batch):
        places, starts = np.arange(keys), mask[batch:, None]
        before_end = places < mask[:batch, None]
        mask = before_end & (places >= starts) if len(starts) else before_end
    if mask.ndim == 1:
        raise ValueError(
            f"smelt does not compute a mask of {len(mask)} lengths for {batch} sequences"
        )
    return (mask > 0)[:, None] if mask.ndim == 3 else (mask > 0)[:, None, None]


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the result, the keys, the values and the scores.

    Raises ValueError for packed operands, shared buffers and unsupported masks.
    """
    query, key, value, bias, mask, scores_bias, past_key, past_value = filled(inputs, 8)
    buffers = inputs[8:]
    assert query is not None
    if key is None or value is None:
        raise ValueError(
            "smelt does not compute queries, keys and values that are packed in one operand"
        )
    if any(operand is not None for operand in buffers):
        raise ValueError("smelt does not compute keys and values in a buffer that runs share")
    count = int_of(attributes, "num_heads")
    if bias is not None:
        sizes = np.cumsum([query.shape[2], key.shape[2]])
        parts = zip((query, key, value), np.split(bias, sizes), strict=True)
        query, key, value = (x + part for x, part in parts)
    q, k, v = (_heads(x, count) for x in (query, key, value))
    if past_key is not None and past_value is not None:
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    scale = attributes["scale"]
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    filler = attributes["mask_filter_value"]
    assert isinstance(filler, int | float)
    if mask is not None:
        scores = scores + np.where(visible_keys(mask, scores), 0, filler)
    if scores_bias is not None:
        scores = scores + scores_bias
    if attributes["unidirectional"]:
        is_later = np.triu(np.ones(scores.shape[-2:], bool), 1 + k.shape[2] - q.shape[2])
        scores = np.where(is_later, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights = weights / weights.sum(-1, keepdims=True)
    result = (weights @ v).transpose(0, 2, 1, 3)
    rows = result.reshape(*result.shape[:2], -1).astype(query.dtype)
    return rows, k.astype(query.dtype), v.astype(query.dtype), scores.astype(query.dtype)


def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build ONNX's Attention; None for packed operands, a bias or a key mask."""
    query, key, value, *optional_operands = filled(inputs, 10)
    ranks = [None if x is None or x.shape is None else len(x.shape) for x in (query, key, value)]
    own_bias, mask, scores_bias, past_key, past_value, *cache_operands = optional_operands
    if ranks != [3, 3, 3] or any(x is not None for x in (own_bias, mask, *cache_operands)):
        return None
    heads, scale = int_of(attributes, "num_heads"), attributes["scale"]
    assert scale is None or isinstance(scale, int | float)
    return b.ops(
        "Attention",
        query,
        key,
        value,
        scores_bias,
        past_key,
        past_value,
        outputs=1 if past_key is None else 3,
        q_num_heads=heads,
        kv_num_heads=heads,
        is_causal=1 if attributes["unidirectional"] else None,
        scale=float(scale) if scale else None,
    )


MULTI_HEAD_ATTENTION = operator(
    "MultiHeadAttention",
    "attention with as many key heads as query heads",
    inputs=(
        *("query", "key?", "value?", "bias?", "key_padding_mask?", "attention_bias?"),
        *("past_key?", "past_value?", "past_sequence_length?", "cache_indirection?"),
    ),
    outputs=("output", "present_key?", "present_value?", "qk?"),
    attributes=(
        *ints(num_heads=None, unidirectional=0),
        *floats(mask_filter_value=HIDDEN, scale=None),
    ),
    infer=infer,
    reference=reference,
    body=body,
    opset=23,
)
OPERATORS = (MULTI_HEAD_ATTENTION,)
