"""``Attention`` and ``QAttention``: queries, keys and values are one product of the same input.

The input is B,S,D. The weights are D,3*H, of bytes for ``QAttention``. The past is 2,B,N,P,H/N. A
mask is B,T or B,S,T with 0 for hidden places, or B lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import (
    Attribute,
    Attributes,
    Computed,
    Given,
    Result,
    int_of,
    ints_of,
)
from smelt.operators.inputs import first, given, present
from smelt.operators.microsoft.attention import shown
from smelt.operators.microsoft.declared import Values, floats, ints, operator

FLOAT, INT32, INT64 = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64
NEVER = float(np.finfo(np.float32).min)
"""A model that looks back only adds this to the scores of later places."""


def _sizes(attributes: Attributes, width: int) -> tuple[int, int, int]:
    """Return the sizes of queries, keys and values in the ``width`` of the product."""
    if attributes.get("qkv_hidden_sizes"):
        query, key, value = ints_of(attributes, "qkv_hidden_sizes")
        return query, key, value
    return (width // 3,) * 3


def _infer(x: ir.Value, width: Dim | None, past: ir.Value | None, said: Attributes) -> list[Result]:
    """Return the types of the result and of the new past, for floats."""
    if x.shape is None or len(x.shape) != 3 or not isinstance(width, int):
        return [Result(None, None)] * 2
    (batch, rows, _), heads = x.shape.dims, int_of(said, "num_heads")
    _, key, value = _sizes(said, width)
    before: Dim | None = 0 if past is None else past.shape[3] if past.shape is not None else None
    whole = rows + before if isinstance(rows, int) and isinstance(before, int) else None
    present = ir.Shape([2, batch, heads, whole, value // heads]) if key == value else None
    return [Result(None, ir.Shape([batch, rows, value])), Result(None, present)]


def _columns(weights: ir.Value | None) -> Dim | None:
    return None if weights is None or weights.shape is None else weights.shape[-1]


def _attend(
    qkv: np.ndarray,
    mask: np.ndarray | None,
    past: np.ndarray | None,
    bias: np.ndarray | None,
    said: Attributes,
) -> Computed:
    """Return softmax of scaled products, times the values, and the keys and values of all
    places."""
    heads = int_of(said, "num_heads")
    query, key, _ = _sizes(said, qkv.shape[-1])
    parts = np.split(qkv, [query, query + key], -1)
    q, k, v = (x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in parts)
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    scores = q @ k.swapaxes(-1, -2) * (said["scale"] or 1 / math.sqrt(q.shape[-1]))
    rows, whole = scores.shape[-2:]
    if mask is not None:
        filler = said["mask_filter_value"]
        assert isinstance(filler, int | float)
        scores = scores + np.where(shown(mask, scores), 0, filler)
    if said["unidirectional"]:
        scores = scores + np.triu(np.full((rows, whole), NEVER), 1 + whole - rows)
    scores = scores if bias is None else scores + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights = weights / weights.sum(-1, keepdims=True)
    result = (weights @ v).transpose(0, 2, 1, 3).reshape(*qkv.shape[:2], -1)
    held = (np.stack([k, v]).astype(qkv.dtype),) if k.shape == v.shape else ()
    return (result.astype(qkv.dtype), *held)


def _heads(b: Builder, x: ir.Value, start: int, size: int, heads: int) -> ir.Value:
    """Return ``size`` columns from ``start`` of B,S,W as B,N,S,``size``/N."""
    ends = (b.const_i64([number]) for number in (start, start + size, 2))
    each = b.op("Reshape", b.op("Slice", x, *ends), b.const_i64([0, 0, heads, size // heads]))
    return b.op("Transpose", each, perm=[0, 2, 1, 3])


def _hidden(b: Builder, mask: ir.Value, columns: ir.Value, like: ir.Value, fill: float) -> ir.Value:
    """Return ``fill`` for what the mask hides and 0 elsewhere, broadcastable to scores of
    B,N,S,T."""
    assert mask.shape is not None
    rank = len(mask.shape)
    if rank == 1:
        ends = b.op("Unsqueeze", b.op("Cast", mask, to=int(INT64)), b.const_i64([1]))
        seen = b.op("Less", columns, ends)
    else:
        seen = b.op("Greater", b.op("Cast", mask, to=int(INT32)), b.constant(np.int32(0)))
    seen = b.op("Unsqueeze", seen, b.const_i64([1] if rank == 3 else [1, 2]))
    return b.op("Where", seen, b.const_like(0, like), b.const_like(fill, like))


def _covers(mask: ir.Value | None, x: ir.Value) -> bool:
    """True for a mask of a form that has a body: lengths must be as many as the sequences."""
    if mask is None:
        return True
    if mask.shape is None or x.shape is None:
        return False
    return len(mask.shape) in (2, 3) or (len(mask.shape) == 1 and mask.shape[0] == x.shape[0])


def _has_heads(said: Attributes, width: int) -> bool:
    """True if heads have elements; ONNX Runtime returns nothing useful for others."""
    heads = int_of(said, "num_heads")
    return heads > 0 and all(size >= heads for size in _sizes(said, width))


def _attended(
    b: Builder,
    qkv: ir.Value,
    width: int,
    mask: ir.Value | None,
    past: ir.Value | None,
    bias: ir.Value | None,
    said: Attributes,
) -> tuple[ir.Value, ...]:
    """Build the nodes that compute ``_attend``."""
    heads, (query, key, value) = int_of(said, "num_heads"), _sizes(said, width)
    q = _heads(b, qkv, 0, query, heads)
    held = [_heads(b, qkv, query, key, heads), _heads(b, qkv, query + key, value, heads)]
    if past is not None:
        old = (b.op("Gather", past, b.const_i64(place), axis=0) for place in (0, 1))
        held = [b.op("Concat", p, x, axis=2) for p, x in zip(old, held, strict=True)]
    k, v = held
    scale, filler = said["scale"] or 1 / math.sqrt(query // heads), said["mask_filter_value"]
    assert isinstance(scale, int | float)
    assert isinstance(filler, int | float)
    products = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", products, b.const_like(scale, products))
    if mask is not None or said["unidirectional"]:
        zero, one = b.const_i64(0), b.const_i64(1)
        rows, whole = (b.op("Gather", b.op("Shape", x), b.const_i64(2), axis=0) for x in (q, k))
        columns = b.op("Unsqueeze", b.op("Range", zero, whole, one), b.const_i64([0]))
        if mask is not None:
            scores = b.op("Add", scores, _hidden(b, mask, columns, scores, filler))
        if said["unidirectional"]:
            places = b.op("Range", b.op("Sub", whole, rows), whole, one)
            late = b.op("Greater", columns, b.op("Unsqueeze", places, b.const_i64([1])))
            ends = (b.const_like(number, scores) for number in (NEVER, 0))
            scores = b.op("Add", scores, b.op("Where", late, *ends))
    scores = scores if bias is None else b.op("Add", scores, bias)
    result = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    rows_of = b.op("Transpose", result, perm=[0, 2, 1, 3])
    output = b.op("Reshape", rows_of, b.const_i64([0, 0, value]))
    if key != value:
        return (output,)
    ahead = b.const_i64([0])
    return output, b.op("Concat", *(b.op("Unsqueeze", x, ahead) for x in held), axis=0)


def _uncovered(said: Attributes) -> bool:
    return bool(said["do_rotary"] or said["past_present_share_buffer"])


def _refuse_uncovered(said: Attributes, length: np.ndarray | None) -> None:
    if _uncovered(said) or length is not None:
        raise ValueError("rotated queries, and a past in a buffer that is shared, are not covered")


def _infer_plain(inputs: Values, said: Attributes) -> Sequence[Result]:
    x = first(inputs)
    results = _infer(x, _columns(given(inputs, 1)), given(inputs, 4), said)
    return [Result(x.dtype, result.shape) for result in results]


def _plain(inputs: Given, said: Attributes) -> Computed:
    x, weights = present(inputs[:2])
    bias, mask, past, scores_bias, length = (*inputs[2:], *(None,) * 5)[:5]
    _refuse_uncovered(said, length)
    qkv = x @ weights
    return _attend(qkv if bias is None else qkv + bias, mask, past, scores_bias, said)


def _plain_body(b: Builder, inputs: Values, said: Attributes) -> tuple[ir.Value, ...] | None:
    """Build Attention: MatMul, bias, then attention of its three parts.

    Returns None for an instance without a body, as ``_bytes_body`` does, and for a past length.
    """
    x, weights, bias, mask, past, scores_bias, length = (*inputs, *(None,) * 7)[:7]
    assert x is not None
    width = _columns(weights)
    if _uncovered(said) or length is not None or not _covers(mask, x):
        return None
    if not isinstance(width, int) or not _has_heads(said, width):
        return None
    qkv = b.op("MatMul", x, weights)
    qkv = qkv if bias is None else b.op("Add", qkv, bias)
    return _attended(b, qkv, width, mask, past, scores_bias, said)


def _infer_bytes(inputs: Values, said: Attributes) -> Sequence[Result]:
    results = _infer(first(inputs), _columns(given(inputs, 1)), given(inputs, 8), said)
    return [Result(FLOAT, result.shape) for result in results]


def _bytes(inputs: Given, said: Attributes) -> Computed:
    x, w, bias, x_scale, w_scale = present(inputs[:5])
    mask, x_zero, w_zero, past = (*inputs[5:], *(None,) * 4)[:4]
    _refuse_uncovered(said, None)
    less = [np.int32(0) if zero is None else zero.astype(np.int32) for zero in (x_zero, w_zero)]
    sums = (x.astype(np.int32) - less[0]) @ (w.astype(np.int32) - less[1])
    qkv = sums.astype(np.float32) * (x_scale * w_scale) + bias
    return _attend(np.asarray(qkv), mask, past, None, said)


def _bytes_body(b: Builder, inputs: Values, said: Attributes) -> tuple[ir.Value, ...] | None:
    """Build QAttention: MatMulInteger, its sums scaled to floats, then attention in floats.

    Returns None for an instance without a body: rotary embeddings, a shared past buffer, a mask of
    an unsupported form, or unknown sizes.
    """
    x, w, bias, x_scale, w_scale, mask, x_zero, w_zero, past = (*inputs, *(None,) * 9)[:9]
    assert x is not None
    width = _columns(w)
    if _uncovered(said) or not _covers(mask, x):
        return None
    if not isinstance(width, int) or not _has_heads(said, width):
        return None
    sums = b.op("MatMulInteger", x, w, x_zero, w_zero)
    real = b.op("Mul", b.op("Cast", sums, to=int(FLOAT)), b.op("Mul", x_scale, w_scale))
    return _attended(b, b.op("Add", real, bias), width, mask, past, None, said)


_ALIKE = (
    *ints(num_heads=None, unidirectional=0, do_rotary=0, past_present_share_buffer=0),
    *floats(mask_filter_value=-10000.0, scale=None),
)
OPERATORS = (
    operator(
        "Attention",
        "attention whose queries, keys and values are one product of the input",
        inputs=(
            *("input", "weights", "bias?", "mask_index?", "past?"),
            *("attention_bias?", "past_sequence_length?"),
        ),
        outputs=("output", "present?"),
        attributes=(
            *_ALIKE,
            *ints(rotary_embedding_dim=0),
            Attribute("qkv_hidden_sizes", ir.AttributeType.INTS),
        ),
        infer=_infer_plain,
        reference=_plain,
        body=_plain_body,
    ),
    operator(
        "QAttention",
        "Attention whose input and weights are bytes",
        inputs=(
            *("input", "weight", "bias", "input_scale", "weight_scale", "mask_index?"),
            *("input_zero_point?", "weight_zero_point?", "past?"),
        ),
        outputs=("output", "present?"),
        attributes=_ALIKE,
        infer=_infer_bytes,
        reference=_bytes,
        body=_bytes_body,
    ),
)
