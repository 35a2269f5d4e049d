"""Requirements of sequences of tensors whose producers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.operand_facts.operands import (
    Facts,
    Operands,
    Size,
    Unknown,
    agree,
    is_axis,
    without_axis,
)

Part: TypeAlias = "tuple[Size, ...] | None"
"""The shape of an element of a sequence; None if unknown."""


def _element_shapes(n: Operands, value: ir.Value | None = None) -> list[Part]:
    """Return the shapes of the elements of a sequence, by default of the first operand.

    Follows the producers: each operator on sequences adds, removes or creates elements. Raises
    Unknown where a producer is none of these.
    """
    value = n.node.inputs[0] if value is None else value
    producer = value.producer() if value is not None else None
    if producer is None or producer.domain:
        raise Unknown
    operands = n.of(producer)
    match producer.op_type:
        case "SequenceEmpty":
            return []
        case "SequenceConstruct":
            return [_element_dims(part) for part in producer.inputs]
        case "SequenceInsert":
            parts = _element_shapes(operands)
            parts.insert(
                _position(operands, 2, len(parts), len(parts)), _element_dims(producer.inputs[1])
            )
            return parts
        case "SequenceErase":
            parts = _element_shapes(operands)
            place = _position(operands, 1, len(parts), len(parts) - 1)
            return parts[:place] + parts[place + 1 :]
        case "SplitToSequence":
            return [None] * _split_count(operands)
    raise Unknown


def _element_dims(part: ir.Value | None) -> Part:
    """Return the dims of a sequence element, with None for symbolic ones; None without a shape."""
    if part is None or part.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else None for dim in part.shape.dims)


def _position(n: Operands, index: int, count: int, default: int) -> int:
    """Return a non-negative position in a sequence of ``count``, ``default`` if the operand is
    absent."""
    place = n.integers(index)[0] if n.is_present(index) else default
    place += count if place < 0 else 0
    if not 0 <= place <= count:
        raise Unknown  # the row of that node reports it
    return place


def _split_count(n: Operands) -> int:
    """Return the number of elements that a SplitToSequence produces."""
    if n.is_present(1) and n.rank(1) == 1:
        return n.size(1, 0)
    length = n.integers(1)[0] if n.is_present(1) else 1
    if length < 1:
        raise Unknown
    size = n.size(0, n.number("axis", 0))
    return (size + length - 1) // length


def _position_is_inside(index: int, beyond: int) -> Callable[[Operands], bool]:
    """Return the check that a position lies in the sequence, or up to ``beyond`` behind its end."""

    def holds(n: Operands) -> bool:
        """True if operand ``index`` is such a position."""
        count = len(_element_shapes(n))
        return -count <= n.integers(index)[0] < count + beyond

    return holds


def _dims_of_parts(n: Operands) -> list[tuple[Size, ...]]:
    """Return the known shapes of the elements.

    Raises Unknown if an element may be empty, because runtimes skip empty elements.
    """
    parts = [part for part in _element_shapes(n) if part is not None]
    if not parts or any(size in (0, None) for part in parts for size in part):
        raise Unknown
    return parts


def _elements_agree(n: Operands) -> bool:
    """True if the elements agree along each axis except the axis of the ConcatFromSequence."""
    first, *others = _dims_of_parts(n)
    if n.number("new_axis", 0):
        return all(agree(first, other) for other in others)
    if not -len(first) <= n.number("axis", 0) < len(first):
        raise Unknown
    axis = n.number("axis", 0) % len(first)
    return all(
        len(first) == len(other) and agree(without_axis(first, axis), without_axis(other, axis))
        for other in others
    )


def _axis_of_result(n: Operands) -> bool:
    """True if the axis of a ConcatFromSequence is one of its result."""
    rank = len(_dims_of_parts(n)[0]) + (1 if n.number("new_axis", 0) else 0)
    return -rank <= n.number("axis", 0) < rank


def _lengths_add_up(n: Operands) -> bool:
    """True if the lengths of the parts of a SplitToSequence add up to the size of the axis."""
    if n.rank(1) == 0:
        raise Unknown
    return sum(n.integers(1)) == n.size(0, n.number("axis", 0))


FACTS: Facts = {
    "SequenceAt": (("the position is one of the sequence", _position_is_inside(1, 0)),),
    "SequenceErase": (("the position is one of the sequence", _position_is_inside(1, 0)),),
    "SequenceInsert": (
        ("the position is one of the sequence, or its end", _position_is_inside(2, 1)),
    ),
    "SplitToSequence": (
        ("axis is one of the input", lambda n: is_axis(n, 0, 0)),
        (
            "a single length is at least 1; each of several lengths is at least 0",
            lambda n: min(n.integers(1), default=1) >= (1 if n.rank(1) == 0 else 0),
        ),
        ("lengths add up to the size of the axis", _lengths_add_up),
    ),
    "ConcatFromSequence": (
        ("axis is an axis of the result", _axis_of_result),
        ("elements have equal sizes along all axes except that of the result", _elements_agree),
    ),
}
