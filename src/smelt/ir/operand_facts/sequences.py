"""Requirements of sequences of tensors whose producers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.operand_facts.operands import Facts, Operands, Size, Unknown, agree, is_axis

Part: TypeAlias = "tuple[Size, ...] | None"
"""The shape of an element of a sequence; None if unknown."""


def _parts(n: Operands, value: ir.Value | None = None) -> list[Part]:
    """Return the shapes of the elements of a sequence, by default of the first operand."""
    value = n.node.inputs[0] if value is None else value
    made = value.producer() if value is not None else None
    if made is None or made.domain:
        raise Unknown
    by = n.of(made)
    match made.op_type:
        case "SequenceEmpty":
            return []
        case "SequenceConstruct":
            return [_sizes(part) for part in made.inputs]
        case "SequenceInsert":
            parts = _parts(by)
            parts.insert(_place(by, 2, len(parts), len(parts)), _sizes(made.inputs[1]))
            return parts
        case "SequenceErase":
            parts = _parts(by)
            place = _place(by, 1, len(parts), len(parts) - 1)
            return parts[:place] + parts[place + 1 :]
        case "SplitToSequence":
            return [None] * _splits(by)
    raise Unknown


def _sizes(part: ir.Value | None) -> Part:
    if part is None or part.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else None for dim in part.shape.dims)


def _place(n: Operands, index: int, count: int, default: int) -> int:
    """Return a non-negative position in a sequence of ``count``, ``default`` if the operand is
    absent."""
    place = n.held(index)[0] if n.given(index) else default
    place += count if place < 0 else 0
    if not 0 <= place <= count:
        raise Unknown  # a row of that node says so
    return place


def _splits(n: Operands) -> int:
    """Return the number of elements that a SplitToSequence produces."""
    if n.given(1) and n.rank(1) == 1:
        return n.size(1, 0)
    length = n.held(1)[0] if n.given(1) else 1
    if length < 1:
        raise Unknown
    return -(-n.size(0, n.number("axis", 0)) // length)


def _inside(index: int, beyond: int) -> Callable[[Operands], bool]:
    """Require that a position lies in the sequence, or up to ``beyond`` behind its end."""

    def holds(n: Operands) -> bool:
        count = len(_parts(n))
        return -count <= n.held(index)[0] < count + beyond

    return holds


def _dims_of_parts(n: Operands) -> list[tuple[Size, ...]]:
    """Return the shapes of all elements; Unknown if one may be empty, because runtimes skip
    those."""
    parts = [part for part in _parts(n) if part is not None]
    if not parts or any(size in (0, None) for part in parts for size in part):
        raise Unknown
    return parts


def _joined(n: Operands) -> bool:
    """True if the elements agree along each axis except the axis of the ConcatFromSequence."""
    first, *others = _dims_of_parts(n)
    if n.number("new_axis", 0):
        return all(agree(first, other) for other in others)
    if not -len(first) <= n.number("axis", 0) < len(first):
        raise Unknown
    axis = n.number("axis", 0) % len(first)
    return all(
        len(first) == len(other) and agree(_without(first, axis), _without(other, axis))
        for other in others
    )


def _without(sizes: tuple[Size, ...], axis: int) -> tuple[Size, ...]:
    return (*sizes[:axis], *sizes[axis + 1 :])


def _axis_of_result(n: Operands) -> bool:
    rank = len(_dims_of_parts(n)[0]) + (1 if n.number("new_axis", 0) else 0)
    return -rank <= n.number("axis", 0) < rank


def _together_as_long(n: Operands) -> bool:
    if n.rank(1) == 0:
        raise Unknown
    return sum(n.held(1)) == n.size(0, n.number("axis", 0))


FACTS: Facts = {
    "SequenceAt": (("the position is one of the sequence", _inside(1, 0)),),
    "SequenceErase": (("the position is one of the sequence", _inside(1, 0)),),
    "SequenceInsert": (("the position is one of the sequence, or its end", _inside(2, 1)),),
    "SplitToSequence": (
        ("axis is one of the input", lambda n: is_axis(n, 0, 0)),
        (
            "a part has 1 element or more; of several lengths none is below 0",
            lambda n: min(n.held(1), default=1) >= (1 if n.rank(1) == 0 else 0),
        ),
        ("lengths are together as long as axis", _together_as_long),
    ),
    "ConcatFromSequence": (
        ("axis is one of the result", _axis_of_result),
        ("parts have one size along each axis but that of the result", _joined),
    ),
}
