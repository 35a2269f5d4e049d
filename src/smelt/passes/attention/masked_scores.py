"""Recognize masked scores and weights, masked by ``Where`` or by products (TensorFlow's exporter).

choice     Where(c, x, number), or Where(c, number, x)
product    x * Cast(c) + number * Cast(Not(c)); a hidden x that is NaN or infinite gives NaN
constant   x * ones + numbers, with ones of 0 and 1, and numbers only where these are 0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import both_orders, producer_of
from smelt.passes.attention.attention_bias import LOW_ENOUGH
from smelt.passes.attention.causal_mask import FLOOR


@dataclass(frozen=True)
class Choice:
    """``value`` where ``condition`` holds, else ``number``; the other way round with ``hides``."""

    condition: ir.Value | np.ndarray
    value: ir.Value
    number: float
    hides: bool = False


def choice_of(value: ir.Value | None, constants: Constants) -> Choice | None:
    """Return ``value`` as a Choice, made by Where or by products; None if it has no such form."""
    node = producer_of(value, "Where")
    if node is not None and node.inputs[0] is not None:
        for branch in (1, 2):
            number, chosen = constants.scalar(node.inputs[branch]), node.inputs[3 - branch]
            if number is not None and chosen is not None:
                return Choice(node.inputs[0], chosen, float(number), hides=branch == 1)
    return product_of(value, constants) or _choice_of_zero(value, constants)


def _choice_of_zero(value: ir.Value | None, constants: Constants) -> Choice | None:
    """Return ``x * ones`` with a mask of zeros and ones as a Choice between x and 0, else None."""
    mul = producer_of(value, "Mul")
    for factor, x in both_orders(mul):
        ones = _mask_of(factor, constants)
        if x is not None and ones is not None:
            return Choice(ones, x, 0.0)
    return None


def product_of(value: ir.Value | None, constants: Constants) -> Choice | None:
    """Return ``value`` as a Choice, made by products and a sum; None if it is none."""
    add = producer_of(value, "Add")
    for product, rest in both_orders(add):
        mul = producer_of(product, "Mul")
        for factor, x in both_orders(mul):
            choice = None if x is None else _choice_of_sum(factor, x, rest, constants)
            if choice is not None:
                return choice
    return None


def _choice_of_sum(
    factor: ir.Value | None, x: ir.Value, rest: ir.Value | None, constants: Constants
) -> Choice | None:
    """Return the choice of ``x * factor + rest`` if factor and rest are complementary masks."""
    condition = _mask_of(factor, constants)
    if isinstance(condition, ir.Value):
        number = _number_of_hidden(rest, condition, constants)
        return None if number is None else Choice(condition, x, number)
    numbers = constants.get(rest, limit=None)
    if condition is None or numbers is None:
        return None
    if np.broadcast_shapes(condition.shape, numbers.shape) != condition.shape:
        return None
    numbers = np.broadcast_to(numbers, condition.shape)
    hidden_numbers = np.unique(numbers[~condition])
    if numbers[condition].any() or len(hidden_numbers) != 1:
        return None
    return Choice(condition, x, float(hidden_numbers[0]))


def _mask_of(factor: ir.Value | None, constants: Constants) -> ir.Value | np.ndarray | None:
    """Return the mask that ``factor`` stands for, else None.

    That is the boolean value that it casts, or its constant zeros and ones as an array of bools.
    """
    condition = _cast_boolean(factor)
    if condition is not None:
        return condition
    ones = constants.get(factor, limit=None)
    if ones is None or not ones.ndim or not np.isin(ones, (0, 1)).all() or ones.all():
        return None
    return ones.astype(np.bool_)


def _cast_boolean(factor: ir.Value | None) -> ir.Value | None:
    """Return the boolean that ``factor`` casts to a number; None if it is no such Cast."""
    cast = producer_of(factor, "Cast")
    truth = cast.inputs[0] if cast is not None else None
    return truth if truth is not None and truth.dtype == ir.DataType.BOOL else None


def _number_of_hidden(
    rest: ir.Value | None, condition: ir.Value, constants: Constants
) -> float | None:
    """Return the number of ``rest`` where ``condition`` is False; ``rest`` is 0 where it is True.

    None if ``rest`` is neither 0 nor ``number * Cast(Not(condition))``.
    """
    if constants.scalar(rest) == 0:
        return 0.0
    mul = producer_of(rest, "Mul")
    for number, factor in both_orders(mul):
        negated = producer_of(_cast_boolean(factor), "Not")
        hidden_number = constants.scalar(number)
        if negated is not None and negated.inputs[0] is condition and hidden_number is not None:
            return float(hidden_number) if np.isfinite(hidden_number) else None
    return None


def bias_instead(choice: Choice, b: Builder) -> ir.Value:
    """Return the bias that hides the same scores when added: 0 or the lowest number."""
    numbers = [np.float32(FLOOR), np.float32(0)]
    chosen = numbers if choice.hides else numbers[::-1]
    if isinstance(choice.condition, np.ndarray):
        return b.constant(np.where(choice.condition, *chosen))
    return b.op("Where", choice.condition, *map(b.constant, chosen))


_chosen_scores = op("Add", var("one"), var("other"), name="chosen")


@rule(op("MatMul", op("Softmax", _chosen_scores, name="weights"), var("v")))
def scores_by_products(m: Match, b: Builder) -> Replacement:
    """Replace masking by products by an added mask.

    A NaN or infinite score stays visible; a score of -inf, for which the product gives NaN, is
    hidden.
    """
    choice = product_of(m["chosen"], m.constants)
    if choice is None or choice.value.dtype != ir.DataType.FLOAT:
        return None
    if not choice.number <= LOW_ENOUGH:
        return Miss("the masking number is not below all scores that the operands can have")
    weights = b.like(m.node("weights"), b.op("Add", choice.value, bias_instead(choice, b)))
    return b.op("MatMul", weights, m["v"])
