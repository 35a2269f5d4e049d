"""Lower and upper bounds of each element of a short integer vector, read off its producers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.node_inputs import first_inputs
from smelt.ir.value_facts.integer_bounds import IntegerBounds

Range: TypeAlias = tuple[int | None, int | None]
"""The least and the greatest value of an element; None where it is unbounded."""

ANY: Range = (None, None)

MAX_ELEMENTS = 64
"""Longest vector that is inspected; shapes are shorter."""

DEPTH = 12
"""Maximum number of producers in a chain that is inspected."""

_SAME = ("Identity", "Reshape", "Squeeze", "Unsqueeze")


def ranges_of(value: ir.Value, depth: int = DEPTH) -> list[Range] | None:
    """Return the range of each element of ``value``, or None unless it holds few integers.

    Handles constants, Concat, Min, Max, Clip and operators that keep elements in order; elements of
    other operators get the bounds of the whole tensor.
    """
    numbers = _constant(value)
    if numbers is not None:
        return [(number, number) for number in numbers]
    count = _count(value)
    if count is None:
        return None
    node = value.producer()
    ranges = None if node is None or node.domain or depth == 0 else _produced(node, depth - 1)
    if ranges is not None and len(ranges) == 1:
        ranges *= count
    if ranges is not None and len(ranges) == count:
        return ranges
    return [_range_of_tensor(value)] * count


def _range_of_tensor(value: ir.Value) -> Range:
    """Return the bounds of all elements of ``value``, if they are closer than those of its type."""
    bounds = IntegerBounds()
    range_ = bounds.of(value)
    return ANY if range_ is None or range_ == bounds.limits(value) else range_


def _produced(node: ir.Node, depth: int) -> list[Range] | None:
    """Return the ranges of the elements that ``node`` computes, or None for other operators."""
    inputs = [value for value in node.inputs if value is not None]
    if node.op_type in _SAME:
        return ranges_of(inputs[0], depth)
    if node.op_type == "Concat":
        parts = [ranges_of(value, depth) for value in inputs]
        return None if None in parts else [item for part in parts for item in part or ()]
    if node.op_type == "Clip":
        _, low, high = first_inputs(node, 3)
        low_ranges = None if low is None else ranges_of(low, depth)
        high_ranges = None if high is None else ranges_of(high, depth)
        ranges = ranges_of(inputs[0], depth)
        ranges = _elementwise([ranges, low_ranges], _max) if low_ranges is not None else ranges
        return _elementwise([ranges, high_ranges], _min) if high_ranges is not None else ranges
    if node.op_type in ("Max", "Min"):
        combine = _max if node.op_type == "Max" else _min
        return _elementwise([ranges_of(value, depth) for value in inputs], combine)
    return None


def _elementwise(parts: Sequence[list[Range] | None], combine: object) -> list[Range] | None:
    """Return ``combine`` of the aligned ranges of ``parts``; a part with one element is broadcast.

    None if a part is unknown or has another length.
    """
    known_parts = [part for part in parts if part is not None]
    if len(known_parts) < len(parts):
        return None
    count = max(map(len, known_parts))
    if any(len(part) not in (1, count) for part in known_parts):
        return None
    rows = zip(*(part * count if len(part) == 1 else part for part in known_parts), strict=True)
    return [combine(row) for row in rows]  # type: ignore[operator]


def _max(ranges: Sequence[Range]) -> Range:
    """Return the range of the largest of one element per range."""
    lows = [low for low, _ in ranges if low is not None]
    highs = [high for _, high in ranges if high is not None]
    highest = max(highs) if len(highs) == len(ranges) else None
    return max(lows, default=None), highest


def _min(ranges: Sequence[Range]) -> Range:
    """Return the range of the smallest of one element per range."""
    lows = [low for low, _ in ranges if low is not None]
    highs = [high for _, high in ranges if high is not None]
    lowest = min(lows) if len(lows) == len(ranges) else None
    return lowest, min(highs, default=None)


def _constant(value: ir.Value) -> list[int] | None:
    """Return the elements of a constant of few integers, else None."""
    if value.is_graph_input() or value.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.size > MAX_ELEMENTS:
        return None
    return [int(item) for item in tensor.numpy().reshape(-1)]


def _count(value: ir.Value) -> int | None:
    """Return the number of elements of a short integer vector or scalar; None for others."""
    if value.dtype not in (ir.DataType.INT64, ir.DataType.INT32) or value.shape is None:
        return None
    if len(value.shape) > 1 or not value.shape.is_static():
        return None
    count = 1
    for dim in value.shape.dims:
        count *= int(dim)  # type: ignore[arg-type]  # it is static
    return count if count <= MAX_ELEMENTS else None
