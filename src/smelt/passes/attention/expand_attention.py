"""Expand an ``Attention`` into products and a Softmax, for targets without it.

    before   Attention<q_num_heads=H, kv_num_heads=H, scale=s>(q, k, v, bias) ─> y
    after    heads apart; Softmax(MatMul(q * s, Transpose(k)) + bias) ─> p ─> MatMul(p, v) ─> y

With ``is_causal``, scores of keys with a higher position than the query become -inf before that.
A query that the bias leaves no key weighs all by 0, where a Softmax alone gives NaN.

Needs    (1) one result; (2) as many heads for keys as for queries, or numbers of heads that
         divide; (3) sizes that are numbers where heads are split off; (4) a bias of numbers, if
         any.
Keeps    (1) past keys and values, caps of scores, masks of booleans, a softmax in another type.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.pattern import op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.shapes import conflicting_shapes
from smelt.passes.base import rounding, rule_pass

_PLAIN = {"softcap": 0.0, "qk_matmul_output_mode": 0}
"""Attributes that must not ask for more."""


@rule(op("Attention", var("q"), var("k"), var("v"), optional(var("bias"))))
def attention(m: Match, b: Builder) -> Replacement:
    given = {a.name: a.value for a in m.root.attributes.values()}
    if any(given.get(name, plain) != plain for name, plain in _PLAIN.items()):  # keeps 1
        return Miss("it does more than weigh values by a softmax")
    dtype = m["q"].dtype
    if given.get("softmax_precision") not in (None, 0, dtype and int(dtype)):
        return Miss("the softmax is in another type than what it weighs")
    if not all(scope.is_dead(value) for value in m.root.outputs[1:]):  # needs 1
        return Miss("keys and values are handed on")
    heads, kv_heads = given.get("q_num_heads"), given.get("kv_num_heads")
    bias = m.get("bias")
    if bias is not None and not bias.shape:
        return Miss("the rank of the mask is not known")
    if bias is not None and bias.dtype != m["q"].dtype:  # needs 4
        return Miss("the mask is no bias")
    given_heads = {"q": heads, "k": kv_heads, "v": kv_heads}
    operands = [_apart(m[name], count, b) for name, count in given_heads.items()]
    if None in operands:  # needs 3
        return Miss("the size of a head is not known")
    q, *shared = (value for value in operands if value is not None)
    copied = [_copied(value, q, b) for value in shared]
    if None in copied:  # needs 2
        return Miss("keys have other heads than queries")
    k, v = (value for value in copied if value is not None)
    size = q.shape[3] if q.shape is not None else None
    if not isinstance(size, int) or q.dtype is None:
        return Miss("the size of a head is not known")
    scale = given.get("scale", 1 / float(np.sqrt(size)))
    factor = b.constant(np.asarray(scale, q.dtype.numpy()))
    scores = b.op("MatMul", b.op("Mul", q, factor), b.op("Transpose", k, perm=[0, 1, 3, 2]))
    if bias is not None:
        scores = b.op("Add", scores, bias)
    seen = _seen(q, k, b) if given.get("is_causal") else None
    weights = b.op("Softmax", _without_later(scores, seen, b), axis=-1)
    if bias is not None and _may_leave_none(m.array(bias, None), causal=seen is not None):
        highest = b.op("ReduceMax", _without_later(bias, seen, b), b.const_i64([-1]), keepdims=1)
        none = b.op("Equal", highest, b.const_like(-np.inf, bias))
        weights = b.op("Where", none, b.const_like(0, weights), weights)
    result = b.op("MatMul", weights, v)
    if heads is None:
        return result
    rows = b.op("Transpose", result, perm=[0, 2, 1, 3])
    width = v.shape[3] if v.shape is not None else None
    if not isinstance(width, int):
        return Miss("the size of a head is not known")
    return b.op("Reshape", rows, b.const_i64([0, 0, heads * width]))


def _apart(value: ir.Value, heads: int | None, b: Builder) -> ir.Value | None:
    """B,H,S,D of ``value``, which has that form already if ``heads`` is None."""
    if heads is None:
        return value
    width = value.shape[2] if value.shape is not None and len(value.shape) == 3 else None
    if not isinstance(width, int) or width % heads:
        return None
    split = b.op("Reshape", value, b.const_i64([0, 0, heads, width // heads]))
    return b.op("Transpose", split, perm=[0, 2, 1, 3])


def _copied(value: ir.Value, q: ir.Value, b: Builder) -> ir.Value | None:
    """B,H,S,D of B,G,S,D, each head as often as queries share it."""
    if value.shape is None or q.shape is None:
        return None
    heads, groups, size = q.shape[1], value.shape[1], value.shape[3]
    if not (isinstance(heads, int) and isinstance(groups, int)):
        return None if conflicting_shapes(_heads(q), _heads(value)) else value
    if heads == groups:
        return value
    if not groups or heads % groups or not isinstance(size, int):
        return None
    apart = b.op("Unsqueeze", value, b.const_i64([2]))
    copies = b.op("Expand", apart, b.const_i64([1, 1, heads // groups, 1, 1]))
    rows = b.op("Shape", value, start=2, end=3)
    merged = b.op("Concat", b.const_i64([0, heads]), rows, b.const_i64([size]), axis=0)
    return b.op("Reshape", copies, merged)


def _heads(value: ir.Value) -> ir.Shape | None:
    return ir.Shape(value.shape[1:2]) if value.shape is not None else None


def _seen(q: ir.Value, k: ir.Value, b: Builder) -> ir.Value:
    """Of the keys, those up to the position of each query; that is never none."""
    rows = b.op("Unsqueeze", _positions(q, b), b.const_i64([1]))
    return b.op("GreaterOrEqual", rows, _positions(k, b))


def _without_later(scores: ir.Value, seen: ir.Value | None, b: Builder) -> ir.Value:
    return scores if seen is None else b.op("Where", seen, scores, b.const_like(-np.inf, scores))


def _may_leave_none(bias: np.ndarray | None, *, causal: bool) -> bool:
    """True unless ``bias`` is a constant that leaves each query a key, also among those seen."""
    if bias is None:
        return True
    out = np.isneginf(bias)
    return bool(out.any() if causal else out.all(axis=-1).any())


def _positions(value: ir.Value, b: Builder) -> ir.Value:
    """0, 1, ... for the rows of B,H,S,D."""
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
