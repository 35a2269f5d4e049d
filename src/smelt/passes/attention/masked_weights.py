"""Rules for weights that are masked after the Softmax by the same mask as the scores before it.

Hidden keys then have the weight 0 already, except in rows whose keys are all hidden; those become
rows of zeros.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_shape
from smelt.ir.walk import both_orders, producer_of
from smelt.passes.attention.attention_bias import LOW_ENOUGH, shows_each_row
from smelt.passes.attention.causal_mask import FLOOR
from smelt.passes.attention.masked_scores import Choice, bias_instead, choice_of
from smelt.passes.attention.rows_without_keys import (
    NOT_MERGED,
    NOT_SHARED,
    bias_of,
    cannot_reduce,
    is_for_all_heads,
    merged_heads,
    rank_of_merged,
    with_zero_rows,
)

_product = op("MatMul", var("w"), var("v"), name="product")


@rule(op("MatMul", var("w"), var("v")), needs=("Softmax",), same_shape=True)
def masked_again(m: Match, b: Builder) -> Replacement:
    """Drop the second masking if each row has a key."""
    scores = _masked_twice(m)
    if scores is None:
        return None
    mask = scores.condition
    if isinstance(mask, np.ndarray):
        shows_each_query = bool(mask.ndim and mask.any(-1).all())
    else:
        shows_each_query = shows_each_row(mask, not scores.hides, m["w"].shape, m.constants)
    if not shows_each_query:
        return Miss("the mask may hide all keys of a row")
    return b.op("MatMul", _weights(scores, m, b), m["v"])


@rule(merged_heads(_product), needs=("Softmax",), same_shape=True)
def rows_masked_again(m: Match, b: Builder) -> Replacement:
    """Drop the second masking and put zeros into result rows whose keys are all hidden."""
    scores = _masked_twice(m)
    if scores is None or isinstance(scores.condition, np.ndarray):
        return None
    mask = scores.condition
    rank = rank_of_merged(m, mask)
    if rank is None:
        return Miss(NOT_MERGED)
    if not is_for_all_heads(mask):
        return Miss(NOT_SHARED)
    if isinstance(obstacle := cannot_reduce(m, mask), Miss):
        return obstacle
    return with_zero_rows(m, b, _weights(scores, m, b), mask, rank, scores.hides)


@rule(op("Softmax", op("Where", var("c"), var("a"), var("z"), name="chosen")), same_shape=True)
def scores_by_choice(m: Match, b: Builder) -> Replacement:
    """Add a mask of products to scores that a Where hides by a finite number.

    A row whose keys are all hidden keeps equal weights.
    """
    choice = choice_of(m["chosen"], m.constants) if m.options.products else None
    if choice is None or choice.value.dtype != ir.DataType.FLOAT:
        return None
    if not (choice.number <= LOW_ENOUGH and np.isfinite(choice.number)):
        return Miss("the masking number is infinite, or not below all scores")
    return b.like(m.root, b.op("Add", choice.value, _bias(choice, m, b)))


def _masked_twice(m: Match) -> Choice | None:
    """Return the masked scores if the same mask also sets weights to 0, else None."""
    weights = choice_of(m["w"], m.constants)
    softmax = producer_of(weights.value, "Softmax") if weights is not None else None
    if weights is None or weights.number or softmax is None or softmax.inputs[0] is None:
        return None
    rank = len(weights.value.shape) if weights.value.shape is not None else 0
    if weights.value.dtype != ir.DataType.FLOAT or not rank:
        return None
    if opset.attribute(softmax, "axis", m.opset) not in (-1, rank - 1):
        return None
    scores = _mask_of(softmax.inputs[0], m)
    if scores is None or not _hide_same_keys(scores, weights):
        return None
    # The same value was broadcast to the scores before; an equal constant may widen the weights.
    is_one_value = isinstance(scores.condition, ir.Value)
    return scores if is_one_value or same_shape(weights.value.shape, m["w"].shape) else None


def _mask_of(scores: ir.Value, m: Match) -> Choice | None:
    """Return ``scores`` as a Choice: the mask replaces scores, or is added to them; None without
    mask."""
    choice = choice_of(scores, m.constants)
    if choice is not None and choice.number <= LOW_ENOUGH:
        return choice
    add = producer_of(scores, "Add")
    for value, bias in both_orders(add):
        masked = None if value is None else _added_mask(value, bias, m)
        if masked is not None:
            return masked
    return None


def _added_mask(value: ir.Value, bias: ir.Value | None, m: Match) -> Choice | None:
    """Return the mask that ``bias`` adds to ``value``: a Where of two numbers, or a constant; None
    if it adds none.
    """
    node, array = producer_of(bias, "Where"), m.array(bias, limit=None)
    if array is not None and array.size and array.dtype == np.float32:
        is_shown = array == 0
        hides_rest = (array[~is_shown] <= LOW_ENOUGH).all()
        return Choice(is_shown, value, float(FLOOR)) if hides_rest and not is_shown.all() else None
    numbers = [m.scalar(branch) for branch in node.inputs[1:]] if node is not None else []
    if node is None or node.inputs[0] is None or None in numbers or 0 not in numbers:
        return None
    hidden_score = sum(float(number) for number in numbers if number is not None)
    hides_where_true = numbers[1] == 0
    return (
        Choice(node.inputs[0], value, hidden_score, hides_where_true)
        if hidden_score <= LOW_ENOUGH
        else None
    )


def _hide_same_keys(scores: Choice, weights: Choice) -> bool:
    """True if both masks hide the same keys: one value, or constants that are equal when
    broadcast."""
    condition, other_condition = scores.condition, weights.condition
    if isinstance(condition, np.ndarray) and isinstance(other_condition, np.ndarray):
        try:
            return bool(np.equal(*np.broadcast_arrays(condition, other_condition)).all())
        except ValueError:
            return False
    return condition is other_condition and scores.hides == weights.hides


def _weights(scores: Choice, m: Match, b: Builder) -> ir.Value:
    """Return the softmax of the scores with the mask added."""
    return b.op("Softmax", b.op("Add", scores.value, _bias(scores, m, b)), axis=-1)


def _bias(scores: Choice, m: Match, b: Builder) -> ir.Value:
    """Return 0 for the keys that are shown and the lowest number for those that are hidden."""
    mask = scores.condition
    if isinstance(mask, np.ndarray):
        return bias_instead(scores, b)
    return bias_of(m, b, mask, scores.hides)
