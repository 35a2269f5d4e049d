"""Expand an ``Attention`` into products and a Softmax, for targets without it.

    before   Attention<q_num_heads=H, kv_num_heads=H, scale=s>(q, k, v, bias) ─> y
    after    heads split; Softmax(MatMul(q * s, Transpose(k)) + bias) ─> p ─> MatMul(p, v) ─> y

With ``is_causal``, the scores of keys after the query become the lowest finite number before the
Softmax, as in ONNX Runtime and JAX. A query whose other scores are all -inf, because of infinite
keys, then weighs those later keys equally. A query without any key left by the bias gets weights
of 0, where a Softmax alone gives NaN.

Past keys and values are first joined with the new ones; the joined tensors are further outputs.
With a ``softcap`` c, the scores become ``Tanh(scores / c) * c`` before bias and mask.

Needs    (1) no output of scores, and outputs of keys and values only together with past ones;
         (2) as many heads for keys as for queries, or head counts that divide; (3) constant head
         sizes where the operator splits heads; (4) a bias of numbers, if any.
Keeps    (1) boolean masks, a softmax in another type, a causal mask together with past keys,
         past keys without past values or the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.floats import float_info
from smelt.ir.node_inputs import first_inputs
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import conflicting_shapes
from smelt.passes.base import rounding, rule_pass


@rule(op("Attention", var("q"), var("k"), var("v"), rest=True))
def attention(m: Match, b: Builder) -> Replacement:
    """Replace an Attention by MatMul, Softmax and MatMul."""
    attributes = {a.name: a.value for a in m.root.attributes.values()}
    _, _, _, bias, *past = first_inputs(m.root, 6)
    refusal = _unfit(m, attributes, bias, past)
    if refusal is not None:
        return refusal
    heads, kv_heads = attributes.get("q_num_heads"), attributes.get("kv_num_heads")
    head_counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    operands = [_split_heads(m[name], count, b) for name, count in head_counts.items()]
    if None in operands:  # needs 3
        return Miss("the size of a head is not known")
    q, *new_keys_values = (value for value in operands if value is not None)
    present = [
        value if past_rows is None else b.op("Concat", past_rows, value, axis=2)
        for past_rows, value in zip(past, new_keys_values, strict=True)
    ]
    repeated_heads = [_repeated_heads(value, q, b) for value in present]
    if None in repeated_heads:  # needs 2
        return Miss(_why_not_repeated(present, q))
    k, v = (value for value in repeated_heads if value is not None)
    head_size, value_size = (x.shape[3] if x.shape is not None else None for x in (q, v))
    if not isinstance(head_size, int):
        return Miss("the head size of the queries is not known")
    if q.dtype is None:
        return Miss("the element type of the queries is not known")
    if heads and not isinstance(value_size, int):
        return Miss("the head size of the values is not known")
    scale = attributes.get("scale", 1 / float(np.sqrt(head_size)))
    q = b.op("Mul", q, b.constant(np.asarray(scale, q.dtype.numpy())))
    result = b.op("MatMul", _attention_weights(q, k, bias, m, attributes, b), v)
    if heads is not None and isinstance(value_size, int):
        rows = b.op("Transpose", result, perm=[0, 2, 1, 3])
        result = b.op("Reshape", rows, b.const_i64([0, 0, heads * value_size]))
    count = len(m.root.outputs)
    return result if count == 1 else (result, *present, None)[:count]


def _attention_weights(
    q: ir.Value,
    k: ir.Value,
    bias: ir.Value | None,
    m: Match,
    attributes: Mapping[str, Any],
    b: Builder,
) -> ir.Value:
    """Return the Softmax of the capped scores of ``q`` and ``k``, with bias and causal mask."""
    constant = m.array(bias, None) if bias is not None else None
    scores = capped_scores(
        b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), attributes, b
    )
    if bias is not None:
        scores = b.op("Add", scores, bias)
    causal_mask = _causal_mask(q, k, b) if attributes.get("is_causal") else None
    return softmax_weights(scores, bias, constant, causal_mask, b)


def _unfit(
    m: Match, attributes: Mapping[str, Any], bias: ir.Value | None, past: Sequence[ir.Value | None]
) -> Miss | None:
    """Return a Miss that names the feature of the Attention that the expansion does not support,
    else None.
    """
    if attributes.get("qk_matmul_output_mode", 0):  # keeps 1
        return Miss("qk_matmul_output_mode is not 0")
    dtype = m["q"].dtype
    if attributes.get("softmax_precision") not in (None, 0, dtype and int(dtype)):
        return Miss("softmax_precision is not the element type of the operands")
    cached = None not in past
    if not cached and past != [None, None]:  # keeps 1
        return Miss("the Attention reads past keys or past values, not both")
    if cached and attributes.get("is_causal"):  # keeps 1
        return Miss("runtimes count causal positions differently with past keys")
    if not all(scope.is_dead(value) for value in m.root.outputs[3 if cached else 1 :]):  # needs 1
        return Miss("keys, values or scores are read as further outputs")
    if bias is not None and bias.dtype != dtype:  # needs 4
        return Miss("the element type of the mask is not that of the operands")
    if bias is not None and not bias.shape:
        return Miss("the rank of the mask is unknown or 0")
    return None


def capped_scores(scores: ir.Value, attributes: Mapping[str, Any], b: Builder) -> ir.Value:
    """Return ``Tanh(scores / c) * c`` for the attribute ``softcap`` c; the scores without it."""
    cap = attributes.get("softcap")
    if not cap:
        return scores
    number = b.const_like(cap, scores)
    return b.op("Mul", b.op("Tanh", b.op("Div", scores, number)), number)


def softmax_weights(
    scores: ir.Value,
    bias: ir.Value | None,
    constant: np.ndarray | None,
    causal_mask: ir.Value | None,
    b: Builder,
) -> ir.Value:
    """Return the softmax of ``scores``, which include ``bias``; rows whose keys it all hides are 0.

    ``constant`` is the bias as an array if it is known; ``causal_mask`` is the causal mask if there
    is one.
    """
    assert scores.dtype is not None  # the dtype of q, checked before
    lowest = float(float_info(scores.dtype.numpy()).min)
    weights = b.op("Softmax", _with_later_keys_as(scores, causal_mask, lowest, b), axis=-1)
    if bias is None or not _may_hide_row(constant, causal=causal_mask is not None):
        return weights
    highest = b.op(
        "ReduceMax",
        _with_later_keys_as(bias, causal_mask, -np.inf, b),
        b.const_i64([-1]),
        keepdims=1,
    )
    no_key = b.op("Equal", highest, b.const_like(-np.inf, bias))
    return b.op("Where", no_key, b.const_like(0, weights), weights)


def _split_heads(value: ir.Value, heads: int | None, b: Builder) -> ir.Value | None:
    """Return ``value`` as B,H,S,D; it already has that form if ``heads`` is None."""
    if heads is None:
        return value if value.shape is None or len(value.shape) == 4 else None
    width = value.shape[2] if value.shape is not None and len(value.shape) == 3 else None
    if not isinstance(width, int) or width % heads:
        return None
    split = b.op("Reshape", value, b.const_i64([0, 0, heads, width // heads]))
    return b.op("Transpose", split, perm=[0, 2, 1, 3])


def _repeated_heads(value: ir.Value, q: ir.Value, b: Builder) -> ir.Value | None:
    """Return B,G,S,D as B,H,S,D: each head is repeated for the query heads that share it.

    None if H is not a multiple of G, or if a size is unknown; see ``_why_not_repeated``.
    """
    if value.shape is None or q.shape is None:
        return None
    heads, groups, size = q.shape[1], value.shape[1], value.shape[3]
    if not (isinstance(heads, int) and isinstance(groups, int)):
        return None if conflicting_shapes(_heads(q), _heads(value)) else value
    if heads == groups:
        return value
    if not groups or heads % groups or not isinstance(size, int):
        return None
    unmerged = b.op("Unsqueeze", value, b.const_i64([2]))
    copies = b.op("Expand", unmerged, b.const_i64([1, 1, heads // groups, 1, 1]))
    rows = b.op("Shape", value, start=2, end=3)
    merged = b.op("Concat", b.const_i64([0, heads]), rows, b.const_i64([size]), axis=0)
    return b.op("Reshape", copies, merged)


def _why_not_repeated(values: Sequence[ir.Value | None], q: ir.Value) -> str:
    """Return why ``_repeated_heads`` cannot repeat the heads of keys or values."""
    heads = q.shape[1] if q.shape is not None else None
    counts = [x.shape[1] if x is not None and x.shape is not None else None for x in values]
    if isinstance(heads, int) and all(isinstance(n, int) and n and heads % n == 0 for n in counts):
        return "the size of a head that queries share is not known"
    return "the head count of the queries is not known to be a multiple of that of keys and values"


def _heads(value: ir.Value) -> ir.Shape | None:
    """Return the dim H of B,H,S,D as a shape of rank 1; None if the shape is unknown."""
    return ir.Shape(value.shape[1:2]) if value.shape is not None else None


def _causal_mask(q: ir.Value, k: ir.Value, b: Builder) -> ir.Value:
    """Return the causal mask: True for keys up to the position of each query, at least one in each
    row."""
    rows = b.op("Unsqueeze", _positions(q, b), b.const_i64([1]))
    return b.op("GreaterOrEqual", rows, _positions(k, b))


def _with_later_keys_as(
    scores: ir.Value, causal_mask: ir.Value | None, number: float, b: Builder
) -> ir.Value:
    """Return ``scores`` with ``number`` where the causal mask ``causal_mask`` is False."""
    return (
        scores
        if causal_mask is None
        else b.op("Where", causal_mask, scores, b.const_like(number, scores))
    )


def _may_hide_row(bias: np.ndarray | None, *, causal: bool) -> bool:
    """True unless ``bias`` is a constant that leaves each query a key.

    Under a causal mask, any hidden key may be the only one that a query has.
    """
    if bias is None:
        return True
    hidden = np.isneginf(bias)
    return bool(hidden.any() if causal else hidden.all(axis=-1).any())


def _positions(value: ir.Value, b: Builder) -> ir.Value:
    """Return the row numbers 0, 1, ... of B,H,S,D."""
    dim = value.shape[2] if value.shape is not None else None
    if isinstance(dim, int):
        return b.const_i64(range(dim))
    count = b.op("Squeeze", b.op("Shape", value, start=2, end=3), b.const_i64([0]))
    return b.op("Range", b.const_i64(0), count, b.const_i64(1))


expand_attention = rule_pass(
    "expand_attention",
    __doc__,
    [attention],
    exactness=rounding(32, "runtimes sum in blocks, and scale both operands"),
    default=False,
)
