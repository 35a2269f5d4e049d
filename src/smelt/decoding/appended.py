"""Let a decoder return only the new rows of its caches, so that a step copies no past row.

    before   Attention(q, k, v, bias, past_k, past_v) ─> y, Concat(past_k, k), Concat(past_v, v)
    after    Concat(MatMul(q, past_k'), MatMul(q, k')) ─> scores
             Softmax(scores + bias) ─> w1, w2 ;  MatMul(w1, past_v) + MatMul(w2, v) ─> y
             outputs: k, v

``'`` is a transpose; w1 are the weights of the past rows, w2 those of the new ones. The output of
the Concat would be a copy of the whole past for each token. Instead, ``State.append`` stores the
new rows in a buffer with room for later ones. The past inputs become P,B,H,D, rows first, so that
the first P rows of the buffer are one block of memory, which a product reads in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.decoding.ports import Cache, Ports
from smelt.decoding.state import ROWS_FIRST
from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs
from smelt.ir.shapes.inference import ShapeInference
from smelt.passes.attention.expand_attention import capped_scores, softmax_weights


@dataclass(frozen=True)
class _CachedAttention:
    """An Attention with a past: its caches, its past inputs and present outputs, and its heads.

    ``query_heads`` is a multiple of ``key_heads``, the number of heads of keys and of values; more
    than one query head may share a key head. ``key_size`` and ``value_size`` are the columns of a
    head.
    """

    node: ir.Node
    caches: tuple[Cache, Cache]
    pasts: tuple[ir.Value, ir.Value]
    presents: tuple[ir.Value, ir.Value]
    query_heads: int
    key_heads: int
    key_size: int
    value_size: int


def append_in_place(model: ir.Model, ports: Ports) -> frozenset[str]:
    """Rewrite each Attention that grows a cache; return the names of the past inputs that changed.

    They now take rows first, and their outputs are the new rows alone. A cache keeps its form if
    another operator reads it, or reads its output.
    """
    shapes = ShapeInference(model)
    caches = {cache.input: cache for cache in ports.caches if cache.kind == "grown"}
    appended: set[str] = set()
    for node in list(model.graph):
        attention = _cached_attention(node, caches)
        if attention is not None:
            _append(model, attention, shapes)
            appended |= {cache.input for cache in attention.caches}
    return frozenset(appended)


def _cached_attention(node: ir.Node, caches: Mapping[str, Cache]) -> _CachedAttention | None:
    """Return ``node`` as an Attention with a past, None if the rewrite does not apply to it."""
    if (node.domain, node.op_type) != ("", "Attention") or len(node.outputs) < 3:
        return None
    attributes = ("is_causal", "qk_matmul_output_mode", "softmax_precision")
    if any(node.attributes.get_int(name, 0) for name in attributes):
        return None
    q, k, v, bias, past_k, past_v = first_inputs(node, 6)
    if q is None or k is None or v is None or past_k is None or past_v is None:
        return None
    if bias is not None and (bias.dtype != q.dtype or not bias.shape):
        return None
    if len(node.outputs) > 3 and node.outputs[3].uses():
        return None
    pasts, presents = (past_k, past_v), (node.outputs[1], node.outputs[2])
    found = [
        caches.get(past.name or "")
        for past, present in zip(pasts, presents, strict=True)
        if _only_attention_uses(node, past, present, caches)
    ]
    heads = _heads(node, q, past_k, past_v)
    if len(found) < 2 or found[0] is None or found[1] is None or heads is None:
        return None
    return _CachedAttention(node, (found[0], found[1]), pasts, presents, *heads)


def _only_attention_uses(
    node: ir.Node, past: ir.Value, present: ir.Value, caches: Mapping[str, Cache]
) -> bool:
    """True if ``past`` and ``present`` are one cache, and only the Attention ``node`` reads it.

    Shape may read the past, too: it is computed from the transposed input then. Nothing may read
    the present inside the model, because it will lack the past rows.
    """
    cache = caches.get(past.name or "")
    if cache is None or cache.axis != 2 or cache.output != present.name:
        return False
    if present.uses() or not present.is_graph_output() or not past.is_graph_input():
        return False
    return {reader.op_type for reader, _ in past.uses() if reader is not node} <= {"Shape"}


def _heads(
    node: ir.Node, q: ir.Value, past_k: ir.Value, past_v: ir.Value
) -> tuple[int, int, int, int] | None:
    """Return the four fields of ``_CachedAttention`` for heads, in order.

    None if one is not known, or key heads do not divide query heads.
    """
    if q.shape is None or past_k.shape is None or past_v.shape is None:
        return None
    # Queries of rank 4 have an axis of heads; those of rank 3 need the attribute.
    queries = node.attributes.get_int("q_num_heads", 0) or (len(q.shape) == 4 and q.shape[1])
    keys, key_size, value_size = past_k.shape[1], past_k.shape[3], past_v.shape[3]
    if not isinstance(queries, int) or not isinstance(keys, int):
        return None
    if not isinstance(key_size, int) or not isinstance(value_size, int):
        return None
    return None if not keys or queries % keys else (queries, keys, key_size, value_size)


def _append(model: ir.Model, attention: _CachedAttention, shapes: ShapeInference) -> None:
    """Replace the Attention of ``step``, its past inputs and its present outputs."""
    node, b = attention.node, Builder(model, model.graph, shapes, before=attention.node)
    q, k, v = (
        _split(value, count, is_split=node.attributes.get_int("q_num_heads", 0) == 0, b=b)
        for value, count in zip(
            first_inputs(node, 3),
            (attention.query_heads, attention.key_heads, attention.key_heads),
            strict=True,
        )
    )
    pasts = [_rows_first(past) for past in attention.pasts]
    presents = [b.op("Transpose", value, perm=ROWS_FIRST) for value in (k, v)]
    y = _attention(attention, (q, k, v), (pasts[0], pasts[1]), b)
    if "q_num_heads" in node.attributes:
        y = b.op("Transpose", y, perm=[0, 2, 1, 3])
        y = b.op("Reshape", y, b.const_i64([0, 0, attention.query_heads * attention.value_size]))
    node.outputs[0].replace_all_uses_with(y, replace_graph_outputs=True)
    for index, cache in enumerate(attention.caches):
        past, present = attention.pasts[index], attention.presents[index]
        first = Builder(model, model.graph, shapes, before=model.graph[0])
        past.replace_all_uses_with(first.op("Transpose", pasts[index], perm=[1, 2, 0, 3]))
        present.replace_all_uses_with(presents[index], replace_graph_outputs=True)
        model.graph.inputs[model.graph.inputs.index(past)] = pasts[index]
        past.name = present.name = None
        pasts[index].name, presents[index].name = cache.input, cache.output
    model.graph.remove(node, safe=True)


def _split(value: ir.Value | None, count: int, b: Builder, *, is_split: bool) -> ir.Value:
    """Return ``value`` as B,count,S,D; it has that form if ``is_split``, else it is B,S,count*D."""
    assert value is not None
    if is_split:
        return value
    rows = b.op("Reshape", value, b.const_i64([0, 0, count, -1]))
    return b.op("Transpose", rows, perm=[0, 2, 1, 3])


def _rows_first(past: ir.Value) -> ir.Value:
    """Return a new input in place of ``past``, B,H,P,D, as P,B,H,D."""
    assert past.shape is not None
    dims = [past.shape.dims[axis] for axis in ROWS_FIRST]
    return ir.Value(name=f"{past.name}_rows", shape=ir.Shape(dims), type=past.type)


def _attention(
    attention: _CachedAttention,
    heads: tuple[ir.Value, ir.Value, ir.Value],
    pasts: tuple[ir.Value, ir.Value],
    b: Builder,
) -> ir.Value:
    """Return the attention of the queries to past and new rows, B,H,S,D for H query heads.

    With G < H key heads, the queries of heads that share keys become rows of one matrix,
    B,G,H/G*S,D, so that each key head is read once.
    """
    (q, k, v), (past_k, past_v) = heads, pasts
    is_shared = attention.query_heads != attention.key_heads
    scale = attention.node.attributes.get_float("scale", attention.key_size**-0.5)
    rows = b.op("Mul", q, b.const_like(scale, q))
    if is_shared:
        rows = b.op("Reshape", rows, b.const_i64([0, attention.key_heads, -1, attention.key_size]))
    past_scores = b.op("MatMul", rows, b.op("Transpose", past_k, perm=[1, 2, 3, 0]))
    new_scores = b.op("MatMul", rows, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Concat", past_scores, new_scores, axis=3)
    length = b.op("Shape", scores, start=3, end=4)
    if is_shared:
        scores = b.op("Reshape", scores, _with_length(attention.query_heads, length, b))
    weights = _weights(attention.node, scores, b)
    if is_shared:
        weights = b.op("Reshape", weights, _with_length(attention.key_heads, length, b))
    past_count, axes = b.op("Shape", past_k, start=0, end=1), b.const_i64([3])
    past_weights = b.op("Slice", weights, b.const_i64([0]), past_count, axes)
    new_weights = b.op("Slice", weights, past_count, length, axes)
    past_sum = b.op("MatMul", past_weights, b.op("Transpose", past_v, perm=[1, 2, 0, 3]))
    y = b.op("Add", past_sum, b.op("MatMul", new_weights, v))
    if not is_shared:
        return y
    return b.op("Reshape", y, b.const_i64([0, attention.query_heads, -1, attention.value_size]))


def _with_length(heads: int, length: ir.Value, b: Builder) -> ir.Value:
    """Return the shape ``0, heads, -1, length`` for a Reshape of scores: 0 keeps the batch."""
    return b.op("Concat", b.const_i64([0, heads, -1]), length, axis=0)


def _weights(node: ir.Node, scores: ir.Value, b: Builder) -> ir.Value:
    """Return the Softmax of ``scores`` as the Attention ``node`` caps and masks them."""
    bias = first_inputs(node, 4)[3]
    attributes = {each.name: each.value for each in node.attributes.values()}
    scores = capped_scores(scores, attributes, b)
    if bias is not None:
        scores = b.op("Add", scores, bias)
    return softmax_weights(scores, bias, None, None, b)
