"""Remove operators that return their input.

    before   x ─> Mul(·, 1) ─> Identity ─> Reshape(to its own shape) ─> y        after   x ─> y

Needs    (1) a result that is proved to have the shape of the input: a neutral constant may still
         broadcast x to a larger shape.
Keeps    (1) Slices with a step, except of one row; (2) Pads that add and crop, Resizes that crop;
         (3) an Identity whose result is an output, if its operand is an input or another output.
         The sign of zero may change, because -0 + 0 is +0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs, optional_input
from smelt.ir.pattern import OneOf, Op, Pattern, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, Rule, rule
from smelt.ir.slices import cuts_of
from smelt.passes.base import EXACT, exact_but_zero_sign, rule_pass
from smelt.passes.simplify.cast_optimization import cast_to_its_own_type

_x = var("x")
_zeros, _ones = const(every=0), const(every=1)


def _rule(name: str, pattern: Op | OneOf, build: Callable[[Match, Builder], Replacement]) -> Rule:
    """Return a Rule called ``name`` that matches ``pattern`` and builds by ``build``."""
    return rule(pattern, name=name)(build)


def _input(m: Match, b: Builder) -> Replacement:
    """Replace the match by x."""
    return m["x"]


_minus = const(every=-1)


def _negated(x: Pattern) -> tuple[Op, ...]:
    """Match ``x`` with the other sign, as Neg, product or quotient."""
    return (
        op("Neg", x, shared=True),
        op("Mul", x, _minus, commutative=True, shared=True),
        op("Div", x, _minus, shared=True),
    )


def _keeps_order(transpose: ir.Node) -> bool:
    """True if the Transpose keeps the order of axes; the default permutation reverses it."""
    perm = transpose.attributes.get("perm")
    if perm is not None:
        return not perm.is_ref() and list(perm.as_ints()) == sorted(perm.as_ints())
    x = transpose.inputs[0]
    return x is not None and x.shape is not None and len(x.shape) < 2


NEUTRAL = [
    _rule("add_zero", op("Add", _x, _zeros, commutative=True), _input),
    _rule("subtract_zero", op("Sub", _x, _zeros), _input),
    _rule("times_one", op("Mul", _x, _ones, commutative=True), _input),
    _rule("over_one", op("Div", _x, _ones), _input),
    _rule("to_the_first", op("Pow", _x, _ones), _input),
    _rule("and_true", op("And", _x, _ones, commutative=True), _input),
    _rule("or_false", op("Or", _x, _zeros, commutative=True), _input),
]

ALWAYS = [
    _rule("identity", op("Identity", _x), _input),  # keeps 3
    _rule("identity_transpose", op("Transpose", _x, where=_keeps_order), _input),
    _rule(
        "double_negation",
        one_of(*(outer for inner in _negated(_x) for outer in _negated(inner))),
        _input,
    ),
    _rule("double_not", op("Not", op("Not", _x, shared=True)), _input),
    _rule("concat_of_one", op("Concat", _x), _input),
    _rule("extremum_of_one", op(["Max", "Min"], _x), _input),
    _rule("sum_of_one", op(["Sum", "Mean"], _x), _input),
    _rule("same_shape", op(["Expand", "Reshape", "Tile"], _x, var("to")), _input),  # needs 1
    _rule("same_rank", op(["Squeeze", "Unsqueeze", "Flatten"], _x, rest=True), _input),
]
"""Rules that are right whenever the shape stays equal, which the rewriter proves."""


@rule(op("CastLike", _x, var("like")))
def cast_like_its_own_type(m: Match, b: Builder) -> Replacement:
    """Drop a CastLike to the type that x already has."""
    known = m["x"].dtype
    return m["x"] if known is not None and known == m["like"].dtype else None


@rule(op("Slice", _x, rest=True))
def whole_slice(m: Match, b: Builder) -> Replacement:
    """Drop a Slice of the whole tensor with step 1, or with any step along dims of size 1."""
    steps = optional_input(m.root, 4)
    if steps is None:
        return m["x"]
    if set(m.ints(steps) or ()) == {1}:  # with step 1, as many rows as before are all rows
        return m["x"]
    cuts, shape = cuts_of(m.root, m.constants), m["x"].shape
    if cuts is None or shape is None:
        return None
    # One row is the same in either direction.
    selects_all = all(step == 1 or shape[axis] == 1 for axis, (_, _, step) in cuts.items())
    return m["x"] if selects_all else None  # keeps 1


@rule(op("Pad", _x, rest=True))
def pad_nothing(m: Match, b: Builder) -> Replacement:
    """Drop a Pad whose pads are all 0."""
    pads = m.ints(m.root.inputs[1])
    if pads is None or any(pads):  # keeps 2
        return Miss("the pads are not all 0") if pads else None
    return m["x"]


@rule(op("Clip", _x, rest=True))
def clip_nothing(m: Match, b: Builder) -> Replacement:
    """Drop a Clip to infinite bounds, or of integers without bounds.

    An absent bound means the largest finite number, which would clip infinity.
    """
    _, lower_bound, upper_bound = first_inputs(m.root, 3)
    low = m.scalar(lower_bound) if lower_bound is not None else None
    high = m.scalar(upper_bound) if upper_bound is not None else None
    if low == -np.inf and high == np.inf:
        return m["x"]
    absent = lower_bound is None and upper_bound is None
    integer = m["x"].dtype is not None and m["x"].dtype.is_integer()
    if absent and integer and _separates_casts(m.root):
        return Miss("the Clip keeps ONNX Runtime from merging the Casts around it")
    return m["x"] if absent and integer else None


def _separates_casts(clip: ir.Node) -> bool:
    """True if ``clip`` reads a Cast or a Cast reads it; ONNX Runtime merges adjacent Casts."""
    producer = clip.inputs[0].producer() if clip.inputs[0] is not None else None
    consumers = [use.node for use in clip.outputs[0].uses()]
    return any(node is not None and node.op_type == "Cast" for node in (producer, *consumers))


@rule(op("Dropout", _x, rest=True))
def dropout_at_inference(m: Match, b: Builder) -> Replacement:
    """Drop a Dropout that is not in training mode."""
    training = optional_input(m.root, 2)
    if training is not None and m.scalar(training) is not False:
        return Miss("training_mode of the Dropout is not the constant False")
    if len(m.root.outputs) > 1:
        return (m["x"], None)
    return m["x"]


@rule(op("Split", _x, rest=True), same_shape=True)
def split_in_one(m: Match, b: Builder) -> Replacement:
    """Drop a Split into one part."""
    return m["x"] if len(m.root.outputs) == 1 else None


_KEPT_BY_REDUCTION = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"]
"""Reductions that return a single element unchanged."""


@rule(op(_KEPT_BY_REDUCTION, _x, rest=True))
def reduce_nothing(m: Match, b: Builder) -> Replacement:
    """Drop a reduction over no axes, or over kept dims of size 1."""
    axes = opset.reduction_axes(m.root, m.constants)
    shape = m["x"].shape
    if axes is None or shape is None or (axes and not opset.keeps_dims(m.root)):
        return None
    return m["x"] if all(shape[axis] == 1 for axis in axes) else None


@rule(op("Resize", _x, rest=True))
def resize_to_its_own_size(m: Match, b: Builder) -> Replacement:
    """Drop a Resize that keeps the size and does not crop."""
    mode = m.root.attributes.get("coordinate_transformation_mode")
    if mode is not None and mode.as_string() == "tf_crop_and_resize":
        return Miss("coordinate_transformation_mode of the Resize is tf_crop_and_resize")
    _, _, scales, sizes = first_inputs(m.root, 4)
    if sizes is not None:
        policy = m.root.attributes.get("keep_aspect_ratio_policy")
        if policy is not None and policy.as_string() != "stretch":
            return Miss("keep_aspect_ratio_policy of the Resize is not stretch")
        return m["x"]
    factors = m.array(scales) if scales is not None else None
    if factors is None or not factors.size or not np.all(factors == 1):
        return None
    return m["x"]


ZERO_ADDED = exact_but_zero_sign("x + 0 is +0 where x is -0")
ADD_ZERO = frozenset({"add_zero", "subtract_zero", "sum_of_one", "reduce_nothing"})
"""Rules that drop an addition of zero; that addition turns -0 into +0."""

noop_elimination = rule_pass(
    "noop_elimination",
    __doc__,
    [
        *NEUTRAL,
        *ALWAYS,
        cast_to_its_own_type,
        cast_like_its_own_type,
        whole_slice,
        pad_nothing,
        clip_nothing,
        dropout_at_inference,
        split_in_one,
        reduce_nothing,
        resize_to_its_own_size,
    ],
    exactness=ZERO_ADDED,
    declares=lambda options, stats: ZERO_ADDED if ADD_ZERO & stats.fired.keys() else EXACT,
    source="Core ML MIL: common::noop_elimination",
)
