"""Selection: the cheapest form of each choice under a table of costs.

A rule matches the form that a model holds, asks the table for its sizes, and builds the other form
only where that is cheaper beyond noise. What it decided against is a near miss with the figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, op, var
from smelt.ir.rule import Build, Match, Miss, Replacement, Rule
from smelt.ir.same_shape import same_dim, same_shape
from smelt.operators.microsoft.declared import DOMAIN
from smelt.passes.attention import expand_attention
from smelt.passes.norms.fuse_elementwise_to_batchnorm import scale_and_offset
from smelt.targets.ort import choices
from smelt.targets.ort.choices import Choice
from smelt.targets.ort.costs import GAIN, Costs, Dim, default_costs, read_costs
from smelt.targets.ort.options import Options
from smelt.targets.ort.weights import rules_for_weights

FLOAT = ir.DataType.FLOAT
"""The element type that the table is measured in; others stay as they are."""

Sizes = Mapping[str, Dim]
SizesOf = Callable[[Match], "Sizes | Miss | None"]
"""Those of a match; a bare None for one that was never meant."""


def rules_for(options: Options) -> Sequence[Rule]:
    """The rules under the table and the choices that ``options`` name."""
    weights = rules_for_weights(options)
    if "all" in options.kept:
        return weights
    costs = read_costs(options.costs) if options.costs else default_costs()
    forms = [
        Rule(f"{choice.name}:{form}", pattern, _priced(costs, choice, form, sizes, build))
        for choice, form, pattern, sizes, build in _forms()
        if choice.name not in options.kept
    ]
    return [*weights, *forms]


def _priced(costs: Costs, choice: Choice, form: str, sizes_of: SizesOf, build: Build) -> Build:
    """``build`` where ``form`` is cheaper at the sizes of the match."""

    def priced(m: Match, b: Builder) -> Replacement:
        values = (*m.root.inputs, *m.root.outputs)
        if any(v is not None and v.dtype not in (FLOAT, None) for v in values):
            return Miss("the costs are of float32")
        sizes = sizes_of(m)
        if sizes is None or isinstance(sizes, Miss):
            return sizes
        ratio = costs.ratio(choice, form, sizes)
        if ratio is None:
            return Miss(f"the table has no costs of {choice.name}")
        if ratio > GAIN:
            return Miss(f"{form} takes {ratio:.2f} of the time")
        return build(m, b)

    return priced


def _rows(value: ir.Value) -> Dim:
    """How many rows ``value`` has, all dims but the last multiplied; None if not known."""
    dims = value.shape.dims[:-1] if value.shape is not None else [None]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(sizes) if len(sizes) == len(dims) else None


def _row_sizes(name: str) -> SizesOf:
    """Rows and width of the value bound to ``name``."""

    def sizes(m: Match) -> Sizes | Miss:
        value = m[name]
        if value.shape is None or not len(value.shape):
            return Miss("the rank is not known")
        return {"rows": _rows(value) or None, "width": _number(value.shape[-1])}

    return sizes


def _number(dim: object) -> Dim:
    """``dim`` if it is a size above 0."""
    return dim if isinstance(dim, int) and dim > 0 else None


def _layer_norm(form: str) -> Build:
    """The runtime fuses an Add that nothing else reads; of operands of one shape, so nothing else
    is worth a change."""

    def build(m: Match, b: Builder) -> Replacement:
        if not same_shape(m["x"].shape, m["s"].shape):
            return Miss("the operands broadcast")
        total = b.op(form, m["x"], m["s"])
        return b.like(m.root, total, *m.root.inputs[1:])

    return build


def _biased(form: str, approximate: str) -> Build:
    """The operator ``form``, of a sum with a bias of one dim and of the same Gelu."""

    def build(m: Match, b: Builder) -> Replacement:
        if m.root.attributes.get_string("approximate", "none") != approximate:
            return None
        x, bias = m["x"], m["b"]
        if x.shape is None or bias.shape is None:
            return Miss("the shapes are not known")
        if len(x.shape) < len(bias.shape):
            x, bias = bias, x
        if len(bias.shape or ()) != 1 or not same_dim(
            (bias.shape or (1,))[0], (x.shape or (0,))[-1]
        ):
            return Miss("the bias does not have one number a column")
        return b.op(form, x, bias, domain=DOMAIN)

    return build


def _biased_sizes(m: Match) -> Sizes | Miss | None:
    """Rows and width of the operand of the higher rank."""
    ranks = {name: len(m[name].shape or ()) for name in ("x", "b")}
    return _row_sizes(max(ranks, key=lambda name: ranks[name]))(m)


def _silu(m: Match, b: Builder) -> Replacement:
    return b.op("QuickGelu", m["x"], domain=DOMAIN, alpha=1.0)


def _product(m: Match, b: Builder) -> Replacement:
    moved = m.node("moved").attributes["perm"].as_ints()
    rank = len(moved)
    if rank < 3 or list(moved) != [*range(rank - 2), rank - 1, rank - 2]:
        return Miss("the Transpose moves more than the last two axes")
    product = b.op("FusedMatMul", m["a"], m["k"], domain=DOMAIN, transB=1)
    # Which of two symbols a broadcast batch has, only the MatMul's own inference says soundly.
    product.shape = m.root.outputs[0].shape
    return product


def _product_sizes(m: Match) -> Sizes | Miss:
    a, k = m["a"].shape, m["k"].shape
    if a is None or k is None or len(a) < 2 or len(k) < 2:
        return Miss("the ranks are not known")
    return {"rows": _number(a[-2]), "inner": _number(a[-1]), "columns": _number(k[-2])}


def _heads(m: Match) -> tuple[int, int] | Miss:
    """How many heads, and the size of each; a Miss where MultiHeadAttention is not the same."""
    given = {a.name: a.value for a in m.root.attributes.values()}
    q, k, v = m.root.inputs[:3]
    heads = given.pop("q_num_heads", None)
    if heads is None or heads != given.pop("kv_num_heads", None):
        return Miss("heads of keys are shared, or heads come first")
    if any(value not in (0, 0.0) for name, value in given.items() if name != "scale"):
        return Miss("it is causal, caps scores or hands them on")
    shapes = [x.shape for x in (q, k, v) if x is not None and x.shape is not None]
    if len(shapes) < 3 or len(m.root.outputs) > 3:
        return Miss("shapes are not known, or scores are handed on")
    wide = shapes[0][-1]
    if not isinstance(wide, int) or wide % heads or shapes[2][-1] != wide:
        return Miss("the size of a head is not a number, or values have another")
    return heads, wide // heads


def _attention_sizes(cached: bool) -> SizesOf:
    def sizes(m: Match) -> Sizes | Miss:
        found = _heads(m)
        if isinstance(found, Miss):
            return found
        past = (*m.root.inputs, *(None,) * 6)[4:6]
        if cached != (None not in past) or len(m.root.inputs) > 6 or any(past) != cached:
            return Miss("there is a past" if not cached else "there is no past")
        q, k = (x.shape for x in m.root.inputs[:2] if x is not None)
        batch = q[0] if q is not None and isinstance(q[0], int) else 1
        said = {"heads": found[0] * max(batch, 1), "size": found[1]}
        rows = _number(q[1]) if q is not None else None
        if not cached:
            return {"rows": rows, "keys": _number(k[1]) if k is not None else None, **said}
        before = past[0].shape if past[0] is not None else None
        return {"rows": rows, "past": _number(before[2]) if before is not None else None, **said}

    return sizes


def _attention(m: Match, b: Builder) -> Replacement:
    q, k, v, bias, *past = (*m.root.inputs, *(None,) * 3)[:6]
    if bias is not None and (bias.shape is None or len(bias.shape) != 4 or bias.dtype != FLOAT):
        return Miss("the mask is no bias of 4 dims")
    if any(value is not None and not scope.is_dead(value) for value in m.root.outputs[3:]):
        return Miss("scores are handed on")
    given = m.root.attributes.get("scale")
    results = b.ops(
        "MultiHeadAttention",
        *(q, k, v, None, None, bias, *past),
        outputs=len(m.root.outputs),
        domain=DOMAIN,
        num_heads=m.root.attributes.get_int("q_num_heads"),
        scale=None if given is None else given.as_float(),
    )
    for result, old in zip(results, m.root.outputs, strict=True):
        result.shape = old.shape
    return results if len(results) > 1 else results[0]


def _capped_sizes(m: Match) -> Sizes | Miss:
    """Of an Attention that caps its scores, with heads in an axis of their own or not."""
    q, k = m["q"].shape, m["k"].shape
    given = m.root.attributes.get_int("q_num_heads", 0)
    if q is None or k is None or len(q) not in (3, 4):
        return Miss("shapes are not known")
    heads = given or _number(q[1])
    before = (*m.root.inputs, *(None,) * 3)[4]
    rows, keys = _number(q[-2]), _number(k[-2])
    if before is not None:
        past = before.shape[2] if before.shape is not None else None
        keys = keys + past if keys and isinstance(past, int) else None
    batch = q[0] if isinstance(q[0], int) else 1
    return {"rows": rows, "keys": keys, "heads": heads and heads * max(batch, 1)}


def _capped(m: Match, b: Builder) -> Replacement:
    return expand_attention.attention.build(m, b)


def _channel_sizes(m: Match) -> Sizes | Miss:
    """Channels and pixels of an x that is scaled and shifted channel by channel."""
    if any(math.prod(m[name].shape or ()) == 1 for name in ("scale", "offset")):
        return Miss("a constant is one number")
    dims = m["x"].shape
    if dims is None or len(dims) < 3:
        return Miss("x is no tensor of rank 3 or more")
    pixels = [_number(dim) for dim in dims[2:]]
    known = [size for size in pixels if size]
    return {
        "channels": _number(dims[1]),
        "pixels": math.prod(known) if len(known) == len(pixels) else None,
    }


@cache
def _forms() -> tuple[tuple[Choice, str, Op | OneOf, SizesOf, Build], ...]:
    """Each form that may take the place of what a model holds: where, at what sizes, and how."""
    residual = op("Add", var("x"), var("s"))
    apart = op("Sum", var("x"), var("s"))
    biased = op("Add", var("x"), var("b"))
    attention, cached, capped = (
        op("Attention", var("q"), var("k"), var("v"), rest=True, where=where)
        for where in (
            None,
            lambda node: any(value is not None for value in node.inputs[4:6]),
            lambda node: node.attributes.get_float("softcap", 0.0) != 0,
        )
    )
    moved = op("Transpose", var("k"), name="moved")
    sigmoid = op("Sigmoid", var("x"))
    rows = _row_sizes("x")
    multi = "MultiHeadAttention"
    return (
        (
            *(choices.RESIDUAL_LAYER_NORM, "Sum"),
            *(op("LayerNormalization", residual, rest=True), rows, _layer_norm("Sum")),
        ),
        (
            *(choices.SUM_LAYER_NORM, "Add"),
            *(op("LayerNormalization", apart, rest=True), rows, _layer_norm("Add")),
        ),
        (
            *(choices.BIAS_GELU, "BiasGelu"),
            *(op("Gelu", biased), _biased_sizes, _biased("BiasGelu", "none")),
        ),
        (
            *(choices.BIAS_GELU_BY_TANH, "FastGelu"),
            *(op("Gelu", biased), _biased_sizes, _biased("FastGelu", "tanh")),
        ),
        (
            *(choices.SILU, "QuickGelu"),
            *(op("Mul", var("x"), sigmoid, commutative=True), rows, _silu),
        ),
        (
            *(choices.TRANSPOSED_PRODUCT, "FusedMatMul"),
            *(op("MatMul", var("a"), moved), _product_sizes, _product),
        ),
        (*(choices.ATTENTION, multi), attention, _attention_sizes(False), _attention),
        (*(choices.CACHED_ATTENTION, multi), cached, _attention_sizes(True), _attention),
        (*(choices.CAPPED_ATTENTION, "Tanh"), capped, _capped_sizes, _capped),
        (
            *(choices.CHANNEL_AFFINE, "BatchNormalization"),
            *(scale_and_offset.pattern, _channel_sizes, scale_and_offset.build),
        ),
    )
