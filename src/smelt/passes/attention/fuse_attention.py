"""Fuse scaled dot-product attention into one ``Attention`` that also splits the heads.

    before   Softmax(Where(mask, MatMul(q, Transpose(k)) * s, low)) ─> p ─> MatMul(p, v) ─> y
    after    Attention<scale=s>(q, k, v, Where(mask, 0, low)) ─> y

    before   Softmax(Add(Where(shown, MatMul(q, Transpose(k)) * s, low), mask))
    after    Attention<scale=s>(q, k, v, Add(Where(shown, 0, low), mask)), of float32

    before   Softmax(Add(Add(MatMul(q, Transpose(k)) * s, table), mask)), or Softmax(... * t)
    after    Attention<scale=s>(q, k, v, Add(table, mask)), or of scale s * t and (...) * t

    before   Reshape and Transpose of each operand from B,S,H*D to B,H,S,D, and back of y
    after    Attention<q_num_heads=H, kv_num_heads=H>(q, k, v, ...) ─> y: B,S,H*D

    before   the same from S,B,H*D, and back
    after    Transpose<perm=[1, 0, 2]> of q, k and v, and of the result B,S,H*D

    before   Attention(q, k, v, Where(GreaterOrEqual(row, column), 0, low)) ─> y
    after    Attention<is_causal=1>(q, k, v) ─> y

    before   Attention(q: B,G*R,S,D, keys and values expanded from B,G,1,S,D and merged)
    after    Attention(q, keys and values B,G,S,D), where R queries share them

    before   a window mask, added to scores B,W,H,S,S with images and windows split (Swin)
    after    Add(scores, mask) with scores B*W,H,S,S; the mask becomes a bias

    before   Softmax(scores * Cast(mask) + low * Cast(Not(mask))), from TensorFlow's exporter
    after    Softmax(scores + Where(mask, 0, low)); the Where becomes a bias

    before   Softmax(scores - c * mask) or Softmax((scores + bias) * s - c * mask), from XLNet
    after    Softmax(... + -c * mask); the mask becomes a bias

    before   q, k, v: A,B,S,H,D, heads first, for attention over rows, columns, blocks or windows
    after    the same for A*B sequences, which become one ``Attention``

    before   RMSNormalization(Transpose<perm=[0, 2, 1, 3]>(x)) of each head
    after    Transpose<perm=[0, 2, 1, 3]>(RMSNormalization(x)); the operator splits these heads, too

All layers share the mask, so its bias is computed once. A mask that broadcasts to queries or keys
is expanded, because ONNX Runtime accepts no other. A Reshape can also split off a single head (keys
that all queries share). A factor of q or of the keys moves into s. The causal mask is recognized by
its values, not by the nodes that compute it. The attribute ``softcap`` replaces
``Mul(Tanh(scores / c), c)``.

Needs    (1) opset 23; (2) float32 or float16; (3) a Softmax over the keys;
         (4) equal batches and heads, or one head of keys and values for all heads of the queries;
         (5) a positive scale, or one number for each head; (6) sizes that are not 0 unless an input
         is empty, and bounds without 0: ONNX Runtime refuses an empty attention
         (sizes after a Conv are positive, because it refuses an empty Conv, too);
         (7) a mask that broadcasts to the scores, with ``low`` at most -1e30, or at most -1e9 if
         the mask replaces scores to which nothing is added. A bias is one value or a sum of two.
         All heads share each value, or Where, sums, products and moves compute it from finite
         constants, integers, booleans and, in float32, products of matrices; the lowest floats
         among them are raised a little. In float16 the largest element of each row is subtracted
         from the row; a mask must show each row a key, and hide keys by -65504 or -inf; (8) for
         the attribute, a square causal mask of float32 without offset, window or padding; (9) keys
         and values copied alike, each head next to its copies; (10) no mask and no bias together
         with a cap: ONNX Runtime up to 1.26 adds them before the cap, so hidden keys may count.
Keeps    (1) masks of -inf that may hide a whole row, where runtimes differ: a constant or a
         triangle must prove that each row has a key; (2) scores and weights with other readers;
         (3) several masks and biases, or one before a scale, if a mask such as -1e6 would round
         them in another order: rows whose keys are all hidden would change.
         The mask is added to the scores: a hidden key whose score is NaN or infinite makes its row
         NaN, where a Where would drop it.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.bounds import possibly_zero_symbols
from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, const, one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import is_positive, same_dim, same_shape
from smelt.passes.attention.attention_bias import bias_of
from smelt.passes.attention.axial_attention import axial_attention
from smelt.passes.attention.cached_heads import cached_heads
from smelt.passes.attention.causal_attention import causal
from smelt.passes.attention.conv_sizes import is_conv_size
from smelt.passes.attention.factor_by_head import factor_by_head, times_by_head
from smelt.passes.attention.grouped_heads import grouped
from smelt.passes.attention.masked_scores import scores_by_products
from smelt.passes.attention.normed_heads import normed_heads
from smelt.passes.attention.split_heads import misfit_of, rows_of
from smelt.passes.attention.unknown_scores import unknown_scores
from smelt.passes.attention.window_mask import window_mask
from smelt.passes.base import rounding, rule_pass
from smelt.passes.first_opsets import opset_miss

TINY = 1e-30
"""Scales between this and its inverse are normal float32 numbers."""

LATE = ("late_factor", "late_divisor")
"""Names of the factor and the divisor that scale the scores after a bias is added."""

MASKS = ("mask", "hidden", "bias", "subtracted")
"""Names of the operands that mask the scores, or are added to or subtracted from them."""


def _times(value: Op | OneOf, factor: str, divisor: str) -> OneOf:
    """Match ``value``, ``value * factor`` or ``value / divisor`` with a constant of that name."""
    return one_of(
        op("Mul", value, const(name=factor), commutative=True),
        op("Div", value, const(name=divisor)),
        value,
    )


_scores = op("MatMul", var("q"), var("keys"))
_scaled = _times(_scores, "factor", "divisor")
_tanh = op("Tanh", _times(_scaled, "cap_factor", "cap_divisor"))
_capped = one_of(op("Mul", _tanh, const(name="cap"), commutative=True), _scaled)
_biased = op("Add", _capped, var("bias"), commutative=True)
_late = _times(_biased, *LATE)
_twice_biased = op("Add", _biased, var("more"), commutative=True)
_added = one_of(
    op("Add", _twice_biased, var("last"), commutative=True),
    _twice_biased,
    op("Add", _late, var("last"), commutative=True),
    op("Sub", one_of(_twice_biased, _late, _capped), var("subtracted")),
    _late,
    _capped,
)
_shown = one_of(
    op("Where", var("mask"), _added, const(name="low")),
    op("Where", var("hidden"), const(name="low"), _added),
    _added,
)
_replaced = one_of(
    op("Where", var("mask"), _capped, const(name="low")),
    op("Where", var("hidden"), const(name="low"), _capped),
)
_replaced_first = op("Add", _replaced, var("then"), commutative=True)
_masked = one_of(op("Max", _shown, const(name="least"), commutative=True), _replaced_first, _shown)


# Softmax(min-bounded, masked, biased, capped and scaled q x keys) x v; every layer is optional.
@rule(op("MatMul", op("Softmax", _masked, name="weights"), var("v")))  # keeps 2
def attention(m: Match, b: Builder) -> Replacement:
    """Replace MatMul, mask, Softmax and MatMul by Attention on B,H,S,D."""
    q, keys, v = m["q"], m["keys"], m["v"]
    if misfit := misfit_of(q, keys, v):  # needs 2, 4
        return Miss(misfit)
    empty = possibly_zero_symbols(b.model.graph)
    sizes = [dim for value in (q, keys, v) for dim in value.shape or ()]
    graph = b.model.graph
    if not all(is_positive(dim, empty) or is_conv_size(dim, graph) for dim in sizes):  # needs 6
        return Miss("a size may be 0, and runtimes support no empty attention")
    if opset.attribute(m.node("weights"), "axis", m.opset) not in (-1, 3):  # needs 3
        return Miss("the axis of the Softmax is not the last axis (the keys)")
    cap = m.scalar("cap") if m.get("cap") is not None else 0.0
    if cap is None or (cap and not TINY < cap < 1 / TINY):
        return Miss("the cap of the scores is not one positive number")
    if cap and any(m.get(name) is not None for name in MASKS):  # needs 10
        return Miss("a mask or bias follows the cap, and older runtimes cap it, too")
    head_factor = factor_by_head(m)
    scale = _scale(m) if head_factor is None else 1.0
    if scale is not None and any(m.get(name) is not None for name in LATE):
        scale = _scale(m, LATE, scale)
    if scale is not None and cap:
        scale = _scale(m, ("cap_factor", "cap_divisor"), scale * float(cap))
    if scale is None:  # needs 5
        return Miss("the scales are not positive constants with a product in the normal range")
    bias = bias_of(m, b)
    if isinstance(bias, Miss):
        return bias
    if early := opset_miss(m, "Attention"):  # needs 1
        return early
    k = b.op("Transpose", keys, perm=[0, 1, 3, 2])
    q = q if head_factor is None else times_by_head(q, head_factor, m, b)
    attributes = [ir.AttrFloat32("scale", scale)]
    if cap:
        attributes.append(ir.AttrFloat32("softcap", float(cap)))
    return b.add(ir.Node("", "Attention", [q, k, v, *bias], attributes))[0]


def _scale(
    m: Match, names: tuple[str, str] = ("factor", "divisor"), before: float = 1.0
) -> float | None:
    """Return ``before`` times the matched factor, or over the divisor; None unless that is a
    positive normal number."""
    factor, divisor = (m.get(name) for name in names)
    number = 1.0 if factor is None and divisor is None else m.scalar(factor or divisor)
    if number is None or not number > 0:
        return None
    scale = before / float(number) if factor is None else before * float(number)
    return scale if TINY < scale < 1 / TINY else None


_split_heads = op(
    "Attention", var("q"), var("k"), var("v"), optional(var("bias")), name="attention"
)


@rule(
    one_of(
        op("Reshape", op("Transpose", _split_heads, perm=(0, 2, 1, 3), name="moved"), rest=True),
        op("Reshape", op("Transpose", _split_heads, perm=(2, 0, 1, 3), name="turned"), rest=True),
        op("Reshape", _split_heads, rest=True),
    )
)
def heads_inside(m: Match, b: Builder) -> Replacement:
    """Let the Attention split the heads: operands B,S,H*D instead of B,H,S,D, and a result B,S,H*D.

    If the sequence comes first, as in PyTorch's ``nn.MultiheadAttention``, Transposes outside swap
    it with the batch.
    """
    node, result = m.node("attention"), m.root.outputs[0].shape
    if "q_num_heads" in node.attributes:
        return None
    rows = [rows_of(m[name]) for name in ("q", "k", "v")]
    if any(rows_of_operand is None for rows_of_operand in rows):
        return Miss("queries, keys or values are not split into heads of a constant count and size")
    if not result:
        return Miss("the rank of the result is unknown or 0")
    q, k, v = (rows_of_operand for rows_of_operand in rows if rows_of_operand is not None)
    if k.heads != v.heads:
        return Miss("keys and values have different head counts")
    sequence_first = m.get("turned") is not None
    if m.get("moved") is None and not sequence_first and q.heads != 1:
        return Miss("the heads are merged without a Transpose")
    if result[-1] != q.heads * v.size:
        return Miss("the last dim of the result is not head count times head size of the values")
    if q.length is None:
        return Miss("the number of queries is not known")
    by_query = len(result) == 3 and same_dim(result[0 if sequence_first else 1], q.length)
    if not by_query and len(result) != 2 and (sequence_first or not _has_explicit_target(m)):
        return Miss("the result is not proved to have one row for each query")
    merged = [rows_of_operand.merged(b) for rows_of_operand in (q, k, v)]
    heads = [ir.AttrInt64("q_num_heads", q.heads), ir.AttrInt64("kv_num_heads", k.heads)]
    bias = [value] if (value := m.get("bias")) is not None else []
    attributes = [*node.attributes.values(), *heads]
    rows_of_heads = b.add(ir.Node("", "Attention", [*merged, *bias], attributes))[0]
    if sequence_first:
        rows_of_heads = b.op("Transpose", rows_of_heads, perm=[1, 0, 2])
    return rows_of_heads if by_query else b.op("Reshape", rows_of_heads, m.root.inputs[1])


def _has_explicit_target(m: Match) -> bool:
    """True if the target of the Reshape is constant and has no 0 (which copies a dim)."""
    target = m.root.inputs[1]
    array = m.array(target) if target is not None else None
    return array is not None and bool(array.all())


def _factored(name: str) -> OneOf:
    """Match ``name`` times a constant or over one."""
    return one_of(
        op("Mul", var(name), const(name="factor"), commutative=True),
        op("Div", var(name), const(name="divisor")),
    )


def _moved_value(name: str) -> Op:
    """Match a scaled ``name`` behind a Reshape or a Transpose."""
    return op(("Reshape", "Transpose"), _factored(name), rest=True, name="moved")


@rule(
    one_of(
        op("Attention", _factored("q"), var("k"), var("v"), optional(var("bias"))),
        op("Attention", _moved_value("q"), var("k"), var("v"), optional(var("bias"))),
        op("Attention", var("q"), _factored("k"), var("v"), optional(var("bias"))),
        op("Attention", var("q"), _moved_value("k"), var("v"), optional(var("bias"))),
    )
)
def scaled_operand(m: Match, b: Builder) -> Replacement:
    """Move a factor of the queries or keys into the attribute ``scale``."""
    attribute = m.root.attributes.get("scale")
    scale = _scale(m, before=attribute.as_float()) if attribute is not None else None
    if scale is None:
        return Miss("the scales are not positive constants with a product in the normal range")
    operands = []
    for value, operand in zip((m["q"], m["k"]), m.root.inputs[:2], strict=True):
        moved = m.node("moved") if operand is m.get("moved") else None
        factored = moved.inputs[0] if moved is not None else operand
        if factored is None or not same_shape(value.shape, factored.shape):
            return Miss("the factor of queries or keys broadcasts them to another shape")
        operands.append(b.like(moved, value, *moved.inputs[1:]) if moved is not None else value)
    if len(m.root.outputs) > 1:
        return Miss("the Attention has further outputs (keys, values or scores)")
    kept_attributes = [a for a in m.root.attributes.values() if a.name != "scale"]
    attributes = [*kept_attributes, ir.AttrFloat32("scale", scale)]
    inputs = [*operands, m["v"], m.get("bias")]
    return b.add(ir.Node("", "Attention", inputs[: len(m.root.inputs)], attributes))[0]


fuse_attention = rule_pass(
    "fuse_attention",
    __doc__,
    [
        *(window_mask, axial_attention, attention, normed_heads, heads_inside, cached_heads),
        *(scores_by_products, scaled_operand, causal, grouped, unknown_scores),
    ],
    exactness=rounding(32, "runtimes sum in blocks; a masked score that overflows becomes visible"),
    after=("fuse_softmax",),
)
