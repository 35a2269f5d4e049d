"""Forms of attention: the operators by which `ort` may replace an Attention, where faster."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.node_inputs import optional_input
from smelt.ir.pattern import Op, op, var
from smelt.ir.rule import Match, Miss, Replacement
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.passes.attention import expand_attention
from smelt.targets.ort import choices
from smelt.targets.ort.form import Form, Sizes, SizesOf, number


def _heads(m: Match) -> tuple[int, int] | Miss:
    """Return the number of heads and their size; a Miss if MultiHeadAttention is not equivalent."""
    attributes = {attribute.name: attribute.value for attribute in m.root.attributes.values()}
    q, k, v = m.root.inputs[:3]
    head_count = attributes.pop("q_num_heads", None)
    if head_count is None:
        return Miss("the operands of the Attention are not B,S,H*D")
    if head_count != attributes.pop("kv_num_heads", None):
        return Miss("the keys have another head count than the queries")
    others = [
        name for name, number in attributes.items() if name != "scale" and number not in (0, 0.0)
    ]
    if others:
        return Miss(f"the attribute {others[0]} of the Attention is not 0")
    shapes = [x.shape for x in (q, k, v) if x is not None and x.shape is not None]
    if len(shapes) < 3:
        return Miss("the shape of queries, keys or values is not known")
    if len(m.root.outputs) > 3:
        return Miss("the scores are an output of the Attention")
    width = shapes[0][-1]
    if not isinstance(width, int):
        return Miss("the head size of the queries is not constant")
    if width % head_count:
        return Miss("the head count does not divide the last dim of the queries")
    if shapes[2][-1] != width:
        return Miss("the head size of the values is not that of the queries")
    return head_count, width // head_count


def _attention_sizes(cached: bool) -> SizesOf:
    """Return a function of the sizes of an attention match, with or without cached keys."""

    def sizes(m: Match) -> Sizes | Miss:
        """Return the sizes by which the table of costs is read; a Miss if the form does not fit.

        They are ``rows``, ``keys`` or ``past``, ``heads`` (heads times batch) and the ``size`` of
        one head.
        """
        heads = _heads(m)
        if isinstance(heads, Miss):
            return heads
        past = (*m.root.inputs, *(None,) * 6)[4:6]
        past_count = sum(value is not None for value in past)
        if len(m.root.inputs) > 6:
            return Miss("the Attention has the input nonpad_kv_seqlen")
        if past_count != (2 if cached else 0):
            return Miss(f"the Attention {'lacks' if cached else 'reads'} past keys or values")
        q, k = (x.shape for x in m.root.inputs[:2] if x is not None)
        batch = q[0] if q is not None and isinstance(q[0], int) else 1
        head_sizes = {"heads": heads[0] * max(batch, 1), "size": heads[1]}
        rows = number(q[1]) if q is not None else None
        if not cached:
            return {"rows": rows, "keys": number(k[1]) if k is not None else None, **head_sizes}
        past_shape = past[0].shape if past[0] is not None else None
        return {
            "rows": rows,
            "past": number(past_shape[2]) if past_shape is not None else None,
            **head_sizes,
        }

    return sizes


def _attention(m: Match, b: Builder) -> Replacement:
    """Build a MultiHeadAttention; a Miss if the mask or the outputs do not fit."""
    q, k, v, bias, *past = (*m.root.inputs, *(None,) * 3)[:6]
    if bias is not None and (bias.shape is None or len(bias.shape) != 4):
        return Miss("the mask is not known to have rank 4")
    if bias is not None and bias.dtype != ir.DataType.FLOAT:
        return Miss("the mask is not a float32 bias")
    if any(value is not None and not scope.is_dead(value) for value in m.root.outputs[3:]):
        return Miss("the scores are read as an output of the Attention")
    scale = m.root.attributes.get("scale")
    results = b.ops(
        "MultiHeadAttention",
        *(q, k, v, None, None, bias, *past),
        outputs=len(m.root.outputs),
        domain=DOMAIN,
        num_heads=m.root.attributes.get_int("q_num_heads"),
        scale=None if scale is None else scale.as_float(),
    )
    for result, replaced in zip(results, m.root.outputs, strict=True):
        result.shape = replaced.shape
    return results if len(results) > 1 else results[0]


def _capped_sizes(m: Match) -> Sizes | Miss:
    """Return the sizes of an Attention with capped scores, with 3 or 4 dims."""
    q, k = m["q"].shape, m["k"].shape
    head_count = m.root.attributes.get_int("q_num_heads", 0)
    if q is None or k is None or len(q) not in (3, 4):
        return Miss("queries or keys are not known to have rank 3 or 4")
    known_heads = head_count or number(q[1])
    past_key = optional_input(m.root, 4)
    rows, keys = number(q[-2]), number(k[-2])
    if past_key is not None:
        past = past_key.shape[2] if past_key.shape is not None else None
        keys = keys + past if keys and isinstance(past, int) else None
    batch = q[0] if isinstance(q[0], int) else 1
    return {"rows": rows, "keys": keys, "heads": known_heads and known_heads * max(batch, 1)}


def _capped_expansion(m: Match, b: Builder) -> Replacement:
    """Build the expansion of an Attention with a soft cap."""
    return expand_attention.attention.build(m, b)


def _attention_node(where: Callable[[ir.Node], bool] | None) -> Op:
    """Return the pattern of an Attention for which ``where`` is true."""
    return op("Attention", var("q"), var("k"), var("v"), rest=True, where=where)


def _has_past(node: ir.Node) -> bool:
    """True if the node has past keys or values."""
    return any(value is not None for value in node.inputs[4:6])


def _has_cap(node: ir.Node) -> bool:
    """True if the node has a soft cap."""
    return node.attributes.get_float("softcap", 0.0) != 0


_MULTI = "MultiHeadAttention"
_any, _cached, _with_cap = map(_attention_node, (None, _has_past, _has_cap))

FORMS = (
    Form(choices.ATTENTION, _MULTI, _any, _attention_sizes(False), _attention),
    Form(choices.CACHED_ATTENTION, _MULTI, _cached, _attention_sizes(True), _attention),
    Form(choices.CAPPED_ATTENTION, "Tanh", _with_cap, _capped_sizes, _capped_expansion),
)
