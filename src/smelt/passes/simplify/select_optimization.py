"""Remove a Where whose condition is known, or that only masks by infinity.

    before   Where(all true, a, b) ─> y                    after   a ─> y
    before   Where(c, a, a) ─> y                           after   a ─> y
    before   Where(size of x > 0, a, b) ─> y               after   a ─> y
    before   Where(c, a, Where(c, b, d)) ─> y              after   Where(c, a, d) ─> y
    before   Where(c, a, Where(Not(c), b, d)) ─> y         after   Where(c, a, b) ─> y
    before   a * Cast(c) + b * Cast(Not(c)) ─> y           after   Where(c, a, b) ─> y
    before   Where(mask, a, Cast(floats)) ─> y             after   Where(mask, a, integers) ─> y
    before   Where(mask, -inf, b) ─> y                     after   Add(b, mask ? -inf : -0) ─> y

The last form needs the option ``assume-finite``: where b is infinite or NaN under the mask, the sum
is NaN. Adding -0 keeps every bit of b; +0 would not.

In the form with a Cast, the floats are constant, and some of them, such as NaN, have no integer. If
a constant mask selects only other elements, those become 0.

Needs    (1) a constant condition, or a number of elements computed from input sizes that the source
         declares to be never 0, as JAX does; (2) a result of the shape of the chosen operand,
         because other operands may broadcast it; for the last form, a constant filled with
         infinities on either side.
Keeps    (1) conditions that are true for some elements only; (2) masks whose sum would need a
         constant with more elements than the condition and than the infinities; (3) products of
         floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import is_positive
from smelt.ir.symbolic_dims.element_counts import size_of
from smelt.passes.base import assumes, exact_but_zero_sign, rule_pass
from smelt.passes.simplify.unselected_casts import unselected_cast

_mask = const(name="mask", limit=None)
_infinite = const(name="infinite", limit=None)


@rule(op("Where", _mask, var("a"), var("b")))  # needs 2
def where_of_constant_condition(m: Match, b: Builder) -> Replacement:
    """Replace a Where with a constant condition by the chosen operand."""
    mask = m.array("mask", limit=None)
    if mask is None:
        return None
    if mask.all():  # needs 1
        return m["a"]
    # keeps 1
    return m["b"] if not mask.any() else Miss("the condition is true for some elements only")


@rule(op("Where", var("condition"), var("a"), var("a")))
def where_of_equal_operands(m: Match, b: Builder) -> Replacement:
    """Replace a Where of two equal operands by the operand."""
    return m["a"]


_same_inner = op("Where", var("condition"), var("hit"), var("miss"), name="inner", shared=True)
_negated = op("Not", var("condition"), shared=True)
_negated_inner = op("Where", _negated, var("miss"), var("hit"), name="inner", shared=True)


@rule(
    one_of(
        op("Where", var("condition"), var("a"), one_of(_same_inner, _negated_inner)),
        op("Where", _negated, one_of(_same_inner, _negated_inner), var("a")),
    )
)  # needs 2
def nested_where_if_false(m: Match, b: Builder) -> Replacement:
    """Simplify an inner Where with the same condition in the branch where it is False."""
    return b.op("Where", m["condition"], m["a"], m["miss"])


@rule(
    one_of(
        op("Where", var("condition"), one_of(_same_inner, _negated_inner), var("a")),
        op("Where", _negated, var("a"), one_of(_same_inner, _negated_inner)),
    )
)  # needs 2
def nested_where_if_true(m: Match, b: Builder) -> Replacement:
    """Simplify an inner Where with the same condition in the branch where it is True."""
    return b.op("Where", m["condition"], m["hit"], m["a"])


_kept = op("Mul", var("a"), op("Cast", var("c"), rest=True, shared=True), commutative=True)
_negation = op("Cast", op("Not", var("c"), shared=True), rest=True, shared=True)
_other = op("Mul", var("b"), _negation, commutative=True)


@rule(op("Add", _kept, _other, commutative=True))
def integers_by_products(m: Match, b: Builder) -> Replacement:
    """Replace ``a * Cast(c) + b * Cast(Not(c))`` of integers by a Where.

    TensorFlow's exporter writes negative indices in this way.
    """
    y, c = m.root.outputs[0], m["c"]
    if c.dtype != ir.DataType.BOOL:
        return Miss("the type of the condition is not bool")
    if y.dtype not in (ir.DataType.INT32, ir.DataType.INT64):  # keeps 3
        return Miss("the result is neither int32 nor int64, and for floats 0 times infinity is NaN")
    return b.op("Where", c, m["a"], m["b"])


_zero = const(0, ulp=0)


@rule(
    one_of(
        op("Where", op("Greater", var("size"), _zero, shared=True), var("a"), var("b")),
        op("Where", op("Less", _zero, var("size"), shared=True), var("a"), var("b")),
    )
)
def positive_size_condition(m: Match, b: Builder) -> Replacement:
    """Replace a choice by ``size > 0`` by the operand for a size that is never 0.

    ``jnp.var`` guards the mean of an empty tensor in this way.
    """
    size = size_of(m["size"], b.shapes)
    if size is None:
        return None
    if not is_positive(size):  # needs 1
        return Miss("the size may be 0, for which the Where chooses another value")
    return m["a"]


@rule(one_of(op("Where", _mask, _infinite, var("x")), op("Where", _mask, var("x"), _infinite)))
def infinite_where_masked(m: Match, b: Builder) -> Replacement:
    """Replace a Where with infinities by an added constant of -0 and infinities."""
    mask, infinite = m.array("mask", limit=None), m.array("infinite", limit=None)
    if mask is None or infinite is None or not is_float(infinite.dtype):
        return None
    if not np.isinf(infinite).all():
        return Miss("an element of the constant is not infinite")
    shape = np.broadcast_shapes(mask.shape, infinite.shape)
    if np.prod(shape, dtype=np.int64) > max(mask.size, infinite.size):  # keeps 2
        return Miss("mask and constant broadcast, so the added constant would be larger than both")
    if not m.options.assume_finite:
        return Miss("masked elements may be NaN or infinite (allowed by --assume-finite)")
    masked = mask if m.root.inputs[1] is m["infinite"] else ~mask
    term = np.where(masked, infinite, np.asarray(-0.0, dtype=infinite.dtype))
    return b.op("Add", m["x"], b.constant(term))


ONE_OPERAND = exact_but_zero_sign("ONNX Runtime's Where turns -0 into +0")
HIDDEN_IS_FINITE = assumes("masked elements are neither infinite nor NaN")


@dataclass(frozen=True)
class Masks:
    """``assume_finite``: assume that masked elements are neither infinite nor NaN."""

    assume_finite: bool = False


select_optimization = rule_pass(
    "select_optimization",
    __doc__,
    [
        *(where_of_constant_condition, where_of_equal_operands, positive_size_condition),
        *(nested_where_if_false, nested_where_if_true, integers_by_products, infinite_where_masked),
        unselected_cast,
    ],
    exactness=ONE_OPERAND,
    declares=lambda options, stats: HIDDEN_IS_FINITE if options.assume_finite else ONE_OPERAND,
    options_type=Masks,
    source="Core ML MIL: common::select_optimization",
)
