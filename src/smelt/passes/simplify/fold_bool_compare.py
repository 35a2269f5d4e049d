"""Replace a comparison of a cast boolean by the boolean, and of bounded sizes by its result.

    before   p: bool ─> Cast(int32) ─> Less(·, 1) ─> y     after   p ─> Not ─> y
    before   p: bool ─> Equal(·, true) ─> y                after   p ─> y
    before   Where(p, 0, -3e38) ─> Cast(bool) ─> y         after   p ─> Not ─> y
    before   x[N], N = 3..9: Shape(x) >= 2 ─> y            after   true ─> y

``jax.lax.cond`` converts its predicate to a branch number and back; PyTorch does the same with the
masks of some attention.

Needs    (1) a constant of one element on either side that does not raise the rank; (2) a
         comparison whose result differs for 0 and 1; (3) for sizes, dims in the main graph whose
         bounds decide the comparison and are checked in every run.
Keeps    (1) comparisons with the same result for 0 and 1; (2) casts of other types than booleans.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.bounds import checked_bounds
from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import static_shape
from smelt.ir.symbolic_dims.size_order import always
from smelt.passes.base import EXACT, rule_pass

COMPARED: dict[str, np.ufunc] = {
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
    "LessOrEqual": np.less_equal,
    "GreaterOrEqual": np.greater_equal,
}

_number = op("Cast", var("p"), shared=True)
_constant = const(name="constant")


@rule(
    one_of(
        op(list(COMPARED), _number, _constant),
        op(list(COMPARED), _constant, _number),
        op("Equal", var("p"), _constant, commutative=True),
    )
)
def compared_truth(m: Match, b: Builder) -> Replacement:
    """Replace a comparison of a cast boolean with a constant by the boolean or its negation."""
    boolean, constant = m["p"], m.array("constant")
    # needs 1, keeps 2
    if boolean.dtype != ir.DataType.BOOL or constant is None or constant.size != 1:
        return None
    if not _is_number(constant):
        return Miss("the constant is not a number")
    truths = np.asarray([False, True]).astype(constant.dtype)
    number = constant.reshape(())
    compare = COMPARED[m.root.op_type]
    swapped = m.root.inputs[0] is m["constant"]
    holds = [
        bool(compare(number, truth) if swapped else compare(truth, number)) for truth in truths
    ]
    if holds == [False, True]:
        return boolean
    if holds == [True, False]:  # needs 2, keeps 1
        return b.op("Not", boolean)
    return Miss("the result is the same for 0 and 1")


def _is_number(array: np.ndarray) -> bool:
    """True for an array of numbers or booleans."""
    return array.dtype.kind in "biuf" or is_float(array.dtype)


_choice = op("Where", var("p"), const(name="then"), const(name="otherwise"), shared=True)


@rule(op("Cast", _choice, to=ir.DataType.BOOL))
def chosen_truth(m: Match, b: Builder) -> Replacement:
    """Replace the Cast to bool of a choice between two constants by its condition or the
    negation."""
    branches = [m.array(m[name]) for name in ("then", "otherwise")]
    if any(array is None or array.size != 1 or not _is_number(array) for array in branches):
        return None  # needs 1
    holds = [bool(array.reshape(()).item()) for array in branches if array is not None]
    if holds == [True, False]:
        return m["p"]
    if holds == [False, True]:
        return b.op("Not", m["p"])
    return Miss("both constants are true, or both are false")


@rule(op(list(COMPARED), var("a"), var("b")))
def compared_sizes(m: Match, b: Builder) -> Replacement:
    """Replace a comparison of sizes by its result if their bounds decide it."""
    bounds, shape = checked_bounds(b.model.graph), static_shape(m.root.outputs[0])
    if not bounds or m.root.graph is not b.model.graph or shape is None:  # needs 3
        return None
    sides = [b.shapes.elements(m[name]) for name in ("a", "b")]
    if any(side is None or len(side) != 1 for side in sides) or math.prod(shape) != 1:
        return None
    left, right = (side[0] for side in sides if side is not None)
    answer = always(m.root.op_type, left, right, bounds)
    return None if answer is None else b.constant(np.full(shape, answer))


fold_bool_compare = rule_pass(
    "fold_bool_compare", __doc__, [compared_truth, chosen_truth, compared_sizes], exactness=EXACT
)
