"""``Attention`` and ``QAttention``: queries, keys and values are one product of the same input.

The input is B,S,D. The weights are D,3*H; those of ``QAttention`` are bytes. The past is
2,B,N,P,H/N. A mask is B,T or B,S,T with 0 for hidden keys, or B lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import (
    Arguments,
    Attribute,
    Attributes,
    Computed,
    Result,
    int_of,
    ints_of,
)
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.attention import visible_keys
from smelt.operators.onnxruntime.microsoft.attention_masks import (
    NEVER,
    masked_scores,
    supports_mask,
)
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator

FLOAT = ir.DataType.FLOAT


def _sizes(attributes: Attributes, width: int) -> tuple[int, int, int]:
    """Return the sizes of queries, keys and values in the ``width`` of the product."""
    if attributes.get("qkv_hidden_sizes"):
        query, key, value = ints_of(attributes, "qkv_hidden_sizes")
        return query, key, value
    return (width // 3,) * 3


def _infer(
    x: ir.Value, width: Dim | None, past: ir.Value | None, attributes: Attributes
) -> list[Result]:
    """Return the shapes of the result and of the new past, without dtypes.

    Raises ValueError without heads.
    """
    if int_of(attributes, "num_heads") < 1:
        raise ValueError("num_heads is below 1")
    if x.shape is None or len(x.shape) != 3 or not isinstance(width, int):
        return [Result(None, None)] * 2
    batch, rows, _ = x.shape.dims
    heads = int_of(attributes, "num_heads")
    _, key, value = _sizes(attributes, width)
    past_rows: Dim | None = 0
    if past is not None:
        past_rows = past.shape[3] if past.shape is not None else None
    key_rows = rows + past_rows if isinstance(rows, int) and isinstance(past_rows, int) else None
    present = ir.Shape([2, batch, heads, key_rows, value // heads]) if key == value else None
    return [Result(None, ir.Shape([batch, rows, value])), Result(None, present)]


def _columns(weights: ir.Value | None) -> Dim | None:
    """Return the number of columns of ``weights``; None if unknown."""
    return None if weights is None or weights.shape is None else weights.shape[-1]


def _attend(
    qkv: np.ndarray,
    mask: np.ndarray | None,
    past: np.ndarray | None,
    bias: np.ndarray | None,
    attributes: Attributes,
) -> Computed:
    """Return attention over the parts of ``qkv``, and the keys and values of all positions."""
    heads = int_of(attributes, "num_heads")
    query, key, _ = _sizes(attributes, qkv.shape[-1])
    parts = np.split(qkv, [query, query + key], -1)
    q, k, v = (x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in parts)
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    scores = q @ k.swapaxes(-1, -2) * (attributes["scale"] or 1 / math.sqrt(q.shape[-1]))
    rows, keys = scores.shape[-2:]
    if mask is not None:
        filler = attributes["mask_filter_value"]
        assert isinstance(filler, int | float)
        scores = scores + np.where(visible_keys(mask, scores), 0, filler)
    if attributes["unidirectional"]:
        scores = scores + np.triu(np.full((rows, keys), NEVER), 1 + keys - rows)
    scores = scores if bias is None else scores + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights = weights / weights.sum(-1, keepdims=True)
    result = (weights @ v).transpose(0, 2, 1, 3).reshape(*qkv.shape[:2], -1)
    present_keys_values = (np.stack([k, v]).astype(qkv.dtype),) if k.shape == v.shape else ()
    return (result.astype(qkv.dtype), *present_keys_values)


def _heads(b: Builder, x: ir.Value, start: int, size: int, heads: int) -> ir.Value:
    """Build ``size`` columns from ``start`` of B,S,W as heads B,N,S,``size``/N."""
    ends = (b.const_i64([number]) for number in (start, start + size, 2))
    heads_last = b.op("Reshape", b.op("Slice", x, *ends), b.const_i64([0, 0, heads, size // heads]))
    return b.op("Transpose", heads_last, perm=[0, 2, 1, 3])


def _has_heads(attributes: Attributes, width: int) -> bool:
    """True if each head has at least one element; results of ONNX Runtime are useless otherwise."""
    heads = int_of(attributes, "num_heads")
    return heads > 0 and all(size >= heads for size in _sizes(attributes, width))


def _attend_body(
    b: Builder,
    qkv: ir.Value,
    width: int,
    mask: ir.Value | None,
    past: ir.Value | None,
    bias: ir.Value | None,
    attributes: Attributes,
) -> tuple[ir.Value, ...]:
    """Build the nodes for what ``_attend`` computes; ``width`` is the last dim of ``qkv``."""
    heads = int_of(attributes, "num_heads")
    query, key, value = _sizes(attributes, width)
    q = _heads(b, qkv, 0, query, heads)
    keys_values = [_heads(b, qkv, query, key, heads), _heads(b, qkv, query + key, value, heads)]
    if past is not None:
        past_keys_values = (b.op("Gather", past, b.const_i64(index), axis=0) for index in (0, 1))
        keys_values = [
            b.op("Concat", past_rows, x, axis=2)
            for past_rows, x in zip(past_keys_values, keys_values, strict=True)
        ]
    k, v = keys_values
    scale = attributes["scale"] or 1 / math.sqrt(query // heads)
    assert isinstance(scale, int | float)
    products = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", products, b.const_like(scale, products))
    scores = masked_scores(b, scores, q, k, mask, attributes)
    scores = scores if bias is None else b.op("Add", scores, bias)
    result = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    rows_first = b.op("Transpose", result, perm=[0, 2, 1, 3])
    output = b.op("Reshape", rows_first, b.const_i64([0, 0, value]))
    if key != value:
        return (output,)
    first_axis = b.const_i64([0])
    return output, b.op("Concat", *(b.op("Unsqueeze", x, first_axis) for x in keys_values), axis=0)


def _is_unsupported(attributes: Attributes) -> bool:
    """True for rotated queries, and for a past in a shared buffer."""
    return bool(attributes["do_rotary"] or attributes["past_present_share_buffer"])


def _refuse_unsupported(attributes: Attributes, length: np.ndarray | None) -> None:
    """Raise ValueError for rotated queries, and for a past in a shared buffer."""
    if _is_unsupported(attributes) or length is not None:
        raise ValueError("smelt does not compute do_rotary=1 or past_present_share_buffer=1")


def _infer_float(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the types of result and new past, in the dtype of the input."""
    x = first(inputs)
    weights, past = input_at(inputs, 1), input_at(inputs, 4)
    results = _infer(x, _columns(weights), past, attributes)
    return [Result(x.dtype, result.shape) for result in results]


def _float_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return result and new past for weights of floats."""
    x, weights = present(inputs[:2])
    bias, mask, past, scores_bias, length = filled(inputs[2:], 5)
    _refuse_unsupported(attributes, length)
    qkv = x @ weights
    return _attend(qkv if bias is None else qkv + bias, mask, past, scores_bias, attributes)


def _float_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build Attention: MatMul, bias, then attention of its three parts.

    Returns None for an instance without a body, as ``_quantized_body`` does, and for a past length.
    """
    x, weights, bias, mask, past, scores_bias, length = filled(inputs, 7)
    assert x is not None
    width = _columns(weights)
    if _is_unsupported(attributes) or length is not None or not supports_mask(mask, x):
        return None
    if not isinstance(width, int) or not _has_heads(attributes, width):
        return None
    qkv = b.op("MatMul", x, weights)
    qkv = qkv if bias is None else b.op("Add", qkv, bias)
    return _attend_body(b, qkv, width, mask, past, scores_bias, attributes)


def _infer_quantized(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the types of result and new past, in float32."""
    weights, past = input_at(inputs, 1), input_at(inputs, 8)
    results = _infer(first(inputs), _columns(weights), past, attributes)
    return [Result(FLOAT, result.shape) for result in results]


def _quantized_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return result and new past for weights of bytes."""
    x, w, bias, x_scale, w_scale = present(inputs[:5])
    mask, x_zero, w_zero, past = filled(inputs[5:], 4)
    _refuse_unsupported(attributes, length=None)
    zero_points = [
        np.int32(0) if zero is None else zero.astype(np.int32) for zero in (x_zero, w_zero)
    ]
    sums = (x.astype(np.int32) - zero_points[0]) @ (w.astype(np.int32) - zero_points[1])
    qkv = sums.astype(np.float32) * (x_scale * w_scale) + bias
    return _attend(np.asarray(qkv), mask, past, bias=None, attributes=attributes)


def _quantized_body(
    b: Builder, inputs: Values, attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build QAttention: MatMulInteger, its sums scaled to floats, then attention in floats.

    Returns None for an instance without a body: rotary embeddings, a shared past buffer, a mask of
    an unsupported form, or unknown sizes.
    """
    x, w, bias, x_scale, w_scale, mask, x_zero, w_zero, past = filled(inputs, 9)
    assert x is not None
    width = _columns(w)
    if _is_unsupported(attributes) or not supports_mask(mask, x):
        return None
    if not isinstance(width, int) or not _has_heads(attributes, width):
        return None
    sums = b.op("MatMulInteger", x, w, x_zero, w_zero)
    real = b.op("Mul", b.op("Cast", sums, to=int(FLOAT)), b.op("Mul", x_scale, w_scale))
    return _attend_body(
        b, b.op("Add", real, bias), width, mask, past, bias=None, attributes=attributes
    )


_SHARED_ATTRIBUTES = (
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
            *_SHARED_ATTRIBUTES,
            *ints(rotary_embedding_dim=0),
            Attribute("qkv_hidden_sizes", ir.AttributeType.INTS),
        ),
        least_ranks={"weights": 2, "past": 5},
        infer=_infer_float,
        reference=_float_reference,
        body=_float_body,
    ),
    operator(
        "QAttention",
        "Attention whose input and weights are bytes",
        inputs=(
            *("input", "weight", "bias", "input_scale", "weight_scale", "mask_index?"),
            *("input_zero_point?", "weight_zero_point?", "past?"),
        ),
        outputs=("output", "present?"),
        attributes=_SHARED_ATTRIBUTES,
        least_ranks={"weight": 2, "past": 5},
        infer=_infer_quantized,
        reference=_quantized_reference,
        body=_quantized_body,
    ),
)
