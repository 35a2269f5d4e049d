"""Make a float32 bias finite and no lower than ``FLOOR``, so that ONNX Runtime treats rows
correctly.

Where a whole row has the lowest float, ONNX Runtime returns zeros; a softmax returns the average of
the values. So the lowest numbers are raised to ``FLOOR``: in the constants from which the bias is
computed, if that is possible; else all numbers are multiplied by ``RAISED``. Products of matrices
are assumed to have the range of scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.node_inputs import optional_input
from smelt.ir.rule import Match
from smelt.ir.walk import producer_of
from smelt.passes.attention.causal_mask import FLOOR, LOW

_MOVES = (
    *("Transpose", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Slice", "Gather", "Tile"),
    *("Flatten", "GatherElements", "GatherND"),
)
"""Operators that only move elements of their first input, and have one result."""

CHOSEN = (*_MOVES, "Split")
"""Operators whose results have only elements of their first input."""

_COMPUTED = (
    *("Where", "Add", "Sub", "Mul", "Div", "Neg", "Cast", "ConstantOfShape"),
    *("Pad", "Concat"),
)
"""Operators whose bounds follow from the bounds of their operands."""

RAISED = 1 - 2**-22
"""A factor that changes the lowest float to another one, and keeps infinities."""

PRODUCTS = ("MatMul", "Einsum")
"""Operators that compute scores, and biases from queries and distances (decomposed positions)."""

_Range = tuple[np.float32, np.float32]

_SCORES: _Range = (np.float32(LOW), np.float32(-LOW))
"""Range of scores, the same that the causal mask assumes."""

_SQUASHED: Mapping[str, _Range] = {
    "Sigmoid": (np.float32(0), np.float32(1)),
    "Tanh": (np.float32(-1), np.float32(1)),
}
"""Range of the results of operators with a bounded result."""

_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_NUMBERS = (np.float32, np.float16)

DEEP = 16
"""Limit of operators between a bias and its constants; models have about five."""


def raise_bias_to_floor(bias: ir.Value, m: Match, b: Builder, clamped: bool) -> ir.Value | None:
    """Return ``bias`` with its lowest floats raised a little; None if that costs too much.

    1. A constant, or the constants from which the bias is computed, are raised to ``FLOOR``.
    2. Else a bias that all heads share is multiplied by ``RAISED``, unless ``clamped``: then sums
       are at least the lowest float, and a Max does.

    A row that has only -inf gives NaN, as in a softmax, where runtimes would return zeros: 0 times
    its maximum is added.
    """
    array = m.array(bias, limit=None)
    if array is not None and _shows_each_row(array):
        is_above = bool((array >= FLOOR).all())
        return bias if is_above else b.constant(np.maximum(array, np.float32(FLOOR)))
    raised = _with_raised_constants(bias, m, b)
    if raised is not None or array is not None or not _is_for_all_heads(bias):
        return raised
    if clamped:
        return b.op("Max", bias, b.constant(np.asarray(FLOOR, np.float32)))
    highest = b.op("ReduceMax", bias, b.const_i64([-1]), keepdims=1)
    no_key = b.op("Mul", highest, b.constant(np.zeros((), np.float32)))  # NaN if -inf
    return b.op("Add", b.op("Mul", bias, b.constant(np.asarray(RAISED, np.float32))), no_key)


def _shows_each_row(array: np.ndarray) -> bool:
    """True if each row has a key that is not -inf, and no element is NaN or +inf."""
    if array.ndim < 2 or array.dtype != np.float32:
        return False
    hidden = array == -np.inf  # fuse_attention keeps 1
    return bool((np.isfinite(array) | hidden).all() and not hidden.all(-1).any())


def _is_for_all_heads(bias: ir.Value) -> bool:
    """True if all heads share the bias, so that it is small compared with the scores."""
    shape = bias.shape
    return shape is not None and (len(shape) == 2 or shape[-3] == 1)


def _with_raised_constants(
    value: ir.Value | None, m: Match, b: Builder, depth: int = 0
) -> ir.Value | None:
    """Return ``value`` computed from constants that are raised to ``FLOOR``.

    None if an element may be NaN or infinite, or if sums and products may leave the range.
    """
    array = m.array(value, limit=None)
    if array is not None:
        if array.dtype != np.float32 or not np.isfinite(array).all():
            return None
        return value if (array >= FLOOR).all() else b.constant(np.maximum(array, np.float32(FLOOR)))
    if _is_within(value, m, depth):
        return value
    node = producer_of(value, "Where", "Add", "Mul", *_MOVES)
    if node is None or depth == DEEP:
        return None
    data_operands = {"Where": (1, 2), "Add": (0, 1), "Mul": (0, 1)}.get(node.op_type, (0,))
    parts = list(node.inputs)
    for index in data_operands:
        if node.op_type != "Mul" or m.scalar(parts[index]) is not None:
            parts[index] = _with_raised_constants(parts[index], m, b, depth + 1)
            if parts[index] is None:
                return None
    if parts == list(node.inputs):
        return value if node.op_type not in ("Add", "Mul") else None
    raised = b.like(node, *parts)
    if node.op_type in ("Add", "Mul") and not _is_within(raised, m, depth):
        return None
    return raised


def bounds_of(value: ir.Value | None, m: Match) -> _Range | None:
    """Return finite lower and upper bounds of the elements (float32 or float16); None if
    unknown."""
    return _bounds(value, m, 0)


def _is_within(value: ir.Value | None, m: Match, depth: int) -> bool:
    """True if all elements of ``value`` are proved to lie between ``FLOOR`` and its negative."""
    bounds = _bounds(value, m, depth)
    return bounds is not None and bool(bounds[0] >= FLOOR and bounds[1] <= -FLOOR)


def _bounds(value: ir.Value | None, m: Match, depth: int) -> _Range | None:
    """Return the bounds as ``bounds_of`` does, at recursion depth ``depth``.

    Rounding keeps order, so bounds are rounded the same way as elements.
    """
    array = m.array(value, limit=None)
    if array is not None:
        if array.dtype not in _NUMBERS or not array.size or not np.isfinite(array).all():
            return None
        return np.float32(array.min()), np.float32(array.max())
    node = producer_of(value, *_COMPUTED, *_SQUASHED, *PRODUCTS, *CHOSEN)
    if node is None or value is None or value.dtype not in _TYPES or depth == DEEP:
        return None
    if node.op_type in PRODUCTS:
        return _SCORES if value.dtype == ir.DataType.FLOAT else None
    if node.op_type == "Cast":
        return _bounds_of_type(node.inputs[0])
    if node.op_type in _SQUASHED:
        return _SQUASHED[node.op_type]
    if node.op_type == "ConstantOfShape":
        filled = node.attributes.get("value")
        number = np.float32(0 if filled is None else filled.as_tensor().numpy()[0])
        return (number, number) if np.isfinite(number) else None
    operands = node.inputs[1:] if node.op_type == "Where" else node.inputs
    operands = node.inputs[:1] if node.op_type in CHOSEN else operands
    operand_bounds = [_bounds(part, m, depth + 1) for part in operands if node.op_type != "Pad"]
    if node.op_type == "Pad":
        operand_bounds = [_bounds(node.inputs[0], m, depth + 1), _padding(node, m)]
    known_bounds = [part for part in operand_bounds if part is not None]
    if len(known_bounds) < len(operand_bounds):
        return None
    return _bounds_of_operator(node.op_type, known_bounds)


def _padding(node: ir.Node, m: Match) -> _Range | None:
    """Return the number that a Pad inserts, as equal lower and upper bounds; None if unknown.

    Modes that insert no number copy elements, which lie within their own bounds.
    """
    value = optional_input(node, 2)
    number = 0 if value is None else m.scalar(value)
    if number is None or not np.isfinite(np.float32(number)):
        return None
    return np.float32(number), np.float32(number)


def _bounds_of_type(value: ir.Value | None) -> _Range | None:
    """Return the range of an integer or boolean dtype, as float32; None for other types."""
    if value is None or value.dtype is None:
        return None
    if value.dtype == ir.DataType.BOOL:
        return np.float32(0), np.float32(1)
    if not value.dtype.is_integer():
        return None
    limits = np.iinfo(value.dtype.numpy())
    return np.float32(limits.min), np.float32(limits.max)


def _bounds_of_operator(kind: str, bounds: list[_Range]) -> _Range | None:
    """Return the bounds of operator ``kind`` applied to operands with bounds ``bounds``; None if
    infinite.

    Operators without a formula here choose elements of their operands.
    """
    (low, high), (other_low, other_high) = bounds[0], bounds[-1]
    if kind == "Div" and other_low <= 0 <= other_high:
        return None
    ends = [end for part in bounds for end in part]
    with np.errstate(all="ignore"):
        if kind == "Add":
            ends = [low + other_low, high + other_high]
        elif kind == "Sub":
            ends = [low - other_high, high - other_low]
        elif kind == "Mul":
            ends = [number * other for number in (low, high) for other in (other_low, other_high)]
        elif kind == "Div":
            ends = [number / other for number in (low, high) for other in (other_low, other_high)]
        elif kind == "Neg":
            ends = [-high, -low]
    return (min(ends), max(ends)) if np.isfinite(ends).all() else None
