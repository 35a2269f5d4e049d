"""Drop the NaN check that PyTorch's exporters write after the Softmax of an attention.

    before   p = Softmax(scores); w = Where(IsNaN(p), 0, p)
    after    w = Softmax(scores)

    before   p = Softmax(scores + Where(mask, 0, -inf)); y = MatMul(Where(IsNaN(p), 0, p), v);
             heads merged: Reshape(Transpose(y))
    after    p = Softmax(scores + Where(mask, 0, low)); y = MatMul(p, v);
             Where(any key of the row, Reshape(Transpose(y)), 0)

    before   p = Softmax(Where(mask, scores, low)); y = MatMul(Where(mask, p, 0), v)
    after    the same: a hidden key has the weight 0, unless all keys of its row are hidden

Keras masks the weights a second time, by ``Where`` or by products (``masked_scores.py``). With one
query, a Reshape merges the heads (also in grouped-query form, where heads are rows). A row of
weights is NaN if all its keys are hidden, or if a score is not finite. All layers share the mask,
so the rows that hide all keys are computed once.

In float16 the largest element of each mask row is subtracted from the row, so that a row whose
keys are all hidden by a finite number has weights, whatever its scores are.

A choice may be reshaped, expanded or transposed before it is added. With ``{products=true}``, masks
are sums and products of 0 and 1, for consumers without Where and ReduceMax; so are masks of scores
that a Where hides by a finite number.

Needs    (1) a Softmax of float32 or float16 over the last dim; (2) in the form without a mask, a
         product, scaled or not, plus at most one bias that leaves each row a key: a constant, or a
         choice between finite numbers; (3) with -inf, float32, and opset 20, where ReduceMax begins
         to support bools, or with products a known number of keys; (4) one mask for all heads, and
         -inf as the only hiding number.
Keeps    (1) weights with other readers. A row with NaN or infinite scores, for which the guard gave
         zeros, becomes NaN.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import Walk, producer_of
from smelt.passes.attention.mask_relative_to_row_max import is_relative, mask_relative_to_row_max
from smelt.passes.attention.masked_weights import (
    masked_again,
    rows_masked_again,
    scores_by_choice,
)
from smelt.passes.attention.rows_without_keys import (
    NOT_MERGED,
    NOT_SHARED,
    MaskForm,
    bias_of,
    cannot_reduce,
    is_for_all_heads,
    merged_heads,
    rank_of_merged,
    with_zero_rows,
)
from smelt.passes.base import rounding, rule_pass

HALF = ir.DataType.FLOAT16

MOVES = ("Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that may stand between the choice and the Add."""

_guarded = op("Where", op("IsNaN", var("p")), const(0), var("p"))


@rule(_guarded, same_shape=True)
def guard_without_mask(m: Match, b: Builder) -> Replacement:
    """Remove the NaN check if no row of scores can have weights of NaN."""
    softmax = _softmax(m, m.walk())
    if isinstance(softmax, Miss):
        return softmax
    if not _has_finite_rows(softmax.inputs[0], m):  # needs 2
        return Miss("a row may have no key, or scores that are not known to be finite")
    return m["p"] if m["p"].dtype == ir.DataType.FLOAT else _in_half(softmax, m, b)


def _in_half(softmax: ir.Node, m: Match, b: Builder) -> Replacement:
    """Return the weights in float16, with the bias relative to the largest element of its row."""
    add = producer_of(softmax.inputs[0], "Add")
    if add is None or add.inputs[0] is None or add.inputs[1] is None:
        return m["p"]
    scores, bias = add.inputs if _hides_no_row(add.inputs[1], m) else add.inputs[::-1]
    relative = (
        mask_relative_to_row_max(bias, m, b) if scores is not None and bias is not None else None
    )
    if relative is None:
        return Miss("a row of float16 may have no key")
    if relative is bias:
        return m["p"]
    return b.like(softmax, b.op("Add", scores, relative))


_product = op("MatMul", _guarded, var("v"), name="product")


@rule(merged_heads(_product), needs=("Softmax",), same_shape=True)
def guard_of_mask(m: Match, b: Builder) -> Replacement:
    """Remove the NaN check of masked weights, and put zeros into rows whose keys are all hidden."""
    walk = m.walk()
    walk.take(m.nodes)
    softmax = _softmax(m, walk)
    if isinstance(softmax, Miss):
        return softmax
    if m["p"].dtype == HALF:
        return None
    add = walk.up(softmax.inputs[0], "Add")
    scores_and_choice = _masked_sum(add, m) if add is not None else None
    if scores_and_choice is None:
        return Miss("the added mask is not a choice between 0 and -inf")
    scores, choice, moves = scores_and_choice
    if (mask := choice.inputs[0]) is None:
        return None
    if isinstance(obstacle := cannot_reduce(m, mask), Miss):  # needs 3
        return obstacle
    for move in moves:
        mask = b.like(move, mask, *move.inputs[1:])
    rank = rank_of_merged(m, mask)
    if rank is None:  # needs 4
        return Miss(NOT_MERGED)
    if not is_for_all_heads(mask):  # needs 4
        return Miss(NOT_SHARED)
    refusal = m.replaces(walk)
    if refusal is not None:  # keeps 1
        return refusal
    hides = m.scalar(choice.inputs[1]) == -np.inf
    bias = bias_of(m, b, mask, hides)
    weights = b.op("Softmax", b.op("Add", scores, bias), axis=-1)
    return with_zero_rows(m, b, weights, mask, rank, hides)


def _softmax(m: Match, walk: Walk) -> ir.Node | Miss:
    """Return the Softmax that computes the weights; a Miss if its dtype or axis does not fit."""
    node, shape = walk.up(m["p"], "Softmax"), m["p"].shape
    if node is None:
        return Miss("the checked value is not the result of a Softmax")
    if shape is None:
        return Miss("the rank of the Softmax is unknown")
    if m["p"].dtype not in (ir.DataType.FLOAT, HALF):
        return Miss("the Softmax is neither float32 nor float16")
    if opset.attribute(node, "axis", m.opset) not in (-1, len(shape) - 1):  # needs 1
        return Miss("the axis of the Softmax is not the last axis (the keys)")
    return node


def _has_finite_rows(scores: ir.Value | None, m: Match) -> bool:
    """True if ``scores`` is a product, scaled or not, plus at most a bias that hides no whole
    row."""
    add = producer_of(scores, "Add")
    if add is not None:
        hides_no_row = [_hides_no_row(value, m) for value in add.inputs]
        if not any(hides_no_row):
            return False
        scores = add.inputs[0 if hides_no_row[1] else 1]
    scaled = producer_of(scores, "Mul", "Div")
    if scaled is not None:
        factor = m.scalar(scaled.inputs[1])
        if factor is None or not np.isfinite(factor) or not factor:
            return False
        scores = scaled.inputs[0]
    return producer_of(scores, "MatMul") is not None


def _hides_no_row(bias: ir.Value | None, m: Match) -> bool:
    """True if no row of ``bias`` is all -inf.

    The bias is a constant that shows each row a key, a choice between finite numbers, or a bias
    relative to the largest element of its row.
    """
    choice, _ = _choice(bias)
    if choice is not None:
        numbers = [m.scalar(value) for value in choice.inputs[1:]]
        return all(number is not None and np.isfinite(number) for number in numbers)
    array = m.array(bias, limit=None)
    if array is None or not array.size or array.dtype.kind != "f":
        return bias is not None and is_relative(bias, m.constants)
    hidden = np.atleast_1d(array == -np.inf)
    return bool(
        (np.isfinite(array) | hidden.reshape(array.shape)).all() and not hidden.all(-1).any()
    )


def _choice(bias: ir.Value | None) -> tuple[ir.Node | None, list[ir.Node]]:
    """Return the ``Where`` behind ``bias``, None without one, and the moves between them in graph
    order.
    """
    moves: list[ir.Node] = []
    while (move := producer_of(bias, *MOVES)) is not None:
        moves.insert(0, move)
        bias = move.inputs[0]
    return producer_of(bias, "Where"), moves


def _masked_sum(add: ir.Node, m: Match) -> tuple[ir.Value, ir.Node, list[ir.Node]] | None:
    """Return ``(scores, where, moves)`` if ``add`` adds ``where``, a choice of 0 and -inf, to
    ``scores``.

    ``moves`` lead from ``where`` to the sum. None if it adds no such choice.
    """
    for scores, bias in (add.inputs, add.inputs[::-1]):
        choice, moves = _choice(bias)
        if scores is None or choice is None:
            continue
        numbers = [m.scalar(value) for value in choice.inputs[1:]]
        if sorted(x for x in numbers if x is not None) == [-np.inf, 0]:
            return scores, choice, moves
    return None


drop_softmax_guard = rule_pass(
    "drop_softmax_guard",
    __doc__,
    [guard_without_mask, guard_of_mask, masked_again, rows_masked_again, scores_by_choice],
    exactness=rounding(4, "a row with NaN or infinite scores becomes NaN"),
    options_type=MaskForm,
)
