"""The rule that replaces a causal mask by the attribute ``is_causal`` of ``Attention``."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, same_dim
from smelt.passes.attention.causal_mask import is_causal


@rule(op("Attention", var("q"), var("k"), var("v"), var("bias")))
def causal(m: Match, b: Builder) -> Replacement:
    """Replace a bias of S by S that holds the causal mask by ``is_causal=1``."""
    node, bias = m.root, m["bias"]
    if node.attributes.get_int("is_causal", 0) or bias.dtype != ir.DataType.FLOAT:
        return None
    queries, keys = _sequence_length(m["q"]), _sequence_length(m["k"])
    if queries is None or keys is None or not same_dim(queries, keys):
        return Miss("queries and keys are not proved to be equally many")
    causal = is_causal(bias, queries, m.constants)  # fuse_attention needs 8
    if causal is None:
        return None
    if not causal:
        return Miss("the mask is a triangle, but hides other keys than the causal mask does")
    if not _divides_heads_evenly(node, m["q"], m["k"]):
        return Miss(
            "the head count of the queries is not proved to be a multiple of that of the keys"
        )
    if len(node.outputs) > 1:
        return Miss("the Attention has further outputs (keys, values or scores)")
    kept_attributes = [a for a in node.attributes.values() if a.name != "is_causal"]
    attributes = [*kept_attributes, ir.AttrInt64("is_causal", 1)]
    return b.add(ir.Node("", "Attention", [m["q"], m["k"], m["v"]], attributes))[0]


def _sequence_length(value: ir.Value) -> Dim | None:
    """Return S of B,H,S,D or B,S,H*D, the number of queries or keys; None for another rank."""
    if value.shape is None or len(value.shape) not in (3, 4):
        return None
    return value.shape[-2]


def _divides_heads_evenly(node: ir.Node, q: ir.Value, k: ir.Value) -> bool:
    """True if each head of keys serves the same number of query heads."""
    if q.shape is None or k.shape is None or len(q.shape) != len(k.shape):
        return False
    names = ("q_num_heads", "kv_num_heads")
    head_counts = [node.attributes.get_int(name, 0) for name in names]
    queries, keys = (q.shape[1], k.shape[1]) if len(q.shape) == 4 else head_counts
    if isinstance(queries, int) and isinstance(keys, int):
        return keys > 0 and queries % keys == 0
    return same_dim(queries, keys)
