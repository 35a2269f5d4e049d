"""Replace tensors read from a sequence by the tensors that were put into it.

    before   x: [6,N] ─> SplitToSequence(2) ─> SequenceAt(1) ─> y
    after    x ─> Slice(2 to 4) ─> y

    before   a, b ─> SequenceConstruct ─> ConcatFromSequence ─> y
    after    a, b ─> Concat ─> y

    before   x ─> Optional ─> OptionalGetElement ─> y        after   x is y

SequenceEmpty, SequenceInsert and SequenceErase may be in between; SequenceLength and
OptionalHasElement become constants. Targets without sequences can then run models of PyTorch's
exporters.

Needs    (1) a sequence that is built in the same graph, not by a loop, a branch or a caller;
         (2) constant positions within the sequence; (3) for SplitToSequence, a known size of the
         axis, and constant sizes of the parts that fill it.
Keeps    (1) the sequence for its other readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs, optional_input
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass

Item: TypeAlias = Callable[[Builder], ir.Value]
"""Builds one tensor of a sequence where it is read."""

MOST_ITEMS = 1024
"""Limit of tensors in a sequence."""

_MAKERS = ("SequenceConstruct", "SequenceEmpty", "SplitToSequence")
_sequence = var("sequence")  # keeps 1


@rule(op("SequenceAt", _sequence, var("position")), min_opset=11, same_shape=True, needs=_MAKERS)
def element_of_a_sequence(m: Match, b: Builder) -> Replacement:
    """Replace SequenceAt by the tensor at that position."""
    items, position = _items(m, m["sequence"]), m.scalar("position")
    if items is None:  # needs 1
        return Miss("the elements of the sequence are not known")
    if position is None:  # needs 2
        return Miss("the position is not constant")
    if not _is_within(position, len(items)):  # needs 2
        return Miss("the position is outside the sequence")
    return items[int(position)](b)


@rule(op("ConcatFromSequence", _sequence), same_shape=True, needs=_MAKERS)
def joined_sequence(m: Match, b: Builder) -> Replacement:
    """Replace ConcatFromSequence by a Concat of the tensors."""
    items, axis = _items(m, m["sequence"]), m.root.attributes.get_int("axis", 0)
    if items is None:
        return Miss("the elements of the sequence are not known")
    if not items:
        return Miss("the sequence is empty")
    values = [item(b) for item in items]
    if m.root.attributes.get_int("new_axis", 0):
        at = b.constant(np.array([axis], np.int64))
        values = [b.op("Unsqueeze", value, at) for value in values]
    return b.op("Concat", *values, axis=axis)


@rule(op("SequenceLength", _sequence), min_opset=11, same_shape=True, needs=_MAKERS)
def length_of_a_sequence(m: Match, b: Builder) -> Replacement:
    """Replace SequenceLength by a constant."""
    items = _items(m, m["sequence"])
    if items is None:  # needs 1
        return Miss("the elements of the sequence are not known")
    return b.constant(np.array(len(items), np.int64))


@rule(
    op("OptionalGetElement", op("Optional", var("element"), shared=True)),
    min_opset=15,
    same_shape=True,
)
def element_of_an_optional(m: Match, b: Builder) -> Replacement:
    """Replace OptionalGetElement of an Optional by its element."""
    return m["element"]


@rule(
    op("OptionalHasElement", op("Optional", rest=True, name="optional", shared=True)),
    min_opset=15,
    same_shape=True,
)
def presence_of_an_element(m: Match, b: Builder) -> Replacement:
    """Replace OptionalHasElement of an Optional by a constant."""
    return b.constant(np.array(any(value is not None for value in m.node("optional").inputs)))


def _items(m: Match, value: ir.Value) -> list[Item] | None:
    """Return the items of the sequence ``value`` in order; None if they are unknown.

    Goes up to the node that creates the sequence, then applies the inserts and erasures on the way
    to its items.
    """
    changes: list[ir.Node] = []
    while (producer := value.producer()) is not None and not producer.domain:
        source = producer.inputs[0] if producer.inputs else None
        if (
            producer.op_type not in ("SequenceInsert", "SequenceErase", "Identity")
            or source is None
        ):
            break
        if len(changes) == MOST_ITEMS:
            return None
        changes.append(producer)
        value = source
    items = _created_items(m, producer)
    for node in reversed(changes if items is not None else []):
        items = _changed_items(m, node, items or [])
        if items is None:
            return None
    return items


def _created_items(m: Match, producer: ir.Node | None) -> list[Item] | None:
    """Return the items with which ``producer`` creates a sequence; None if they are unknown."""
    if producer is None or producer.domain:
        return None
    if producer.op_type == "SequenceEmpty":
        return []
    if producer.op_type == "SequenceConstruct" and len(producer.inputs) <= MOST_ITEMS:
        return [_item(value) for value in producer.inputs if value is not None]
    return _split_items(m, producer) if producer.op_type == "SplitToSequence" else None


def _changed_items(m: Match, node: ir.Node, items: list[Item]) -> list[Item] | None:
    """Return ``items`` after a SequenceInsert or SequenceErase; None if its position is unknown."""
    if node.op_type == "Identity":
        return items
    inserts = node.op_type == "SequenceInsert"
    position_input = first_inputs(node, 3)[2 if inserts else 1]
    last_position = len(items) if inserts else len(items) - 1
    position = last_position if position_input is None else m.scalar(position_input)
    if position is None:  # needs 2
        return None
    index = int(position)
    if not inserts:
        return items[:index] + items[index:][1:] if _is_within(index, len(items)) else None
    tensor = node.inputs[1]
    if tensor is None or not -len(items) <= index <= len(items):
        return None
    index += len(items) if index < 0 else 0
    return [*items[:index], _item(tensor), *items[index:]]


def _item(value: ir.Value) -> Item:
    """Return an Item for a tensor that the graph has."""
    return lambda _: value


def _split_items(m: Match, node: ir.Node) -> list[Item] | None:
    """Return the parts that a SplitToSequence makes as items; None if their sizes are unknown."""
    data = node.inputs[0]
    if data is None or data.shape is None or not data.shape:
        return None
    axis = node.attributes.get_int("axis", 0) % len(data.shape)
    sizes = _sizes(m, node, data.shape[axis])
    if sizes is None or len(sizes) > MOST_ITEMS:  # needs 3
        return None
    if len(node.inputs) < 2 and not node.attributes.get_int("keepdims", 1):
        return [_item_of_row(data, axis, index) for index in range(len(sizes))]
    ends = np.cumsum(sizes).tolist()
    return [
        _item_of_rows(data, axis, end - size, end) for size, end in zip(sizes, ends, strict=True)
    ]


def _sizes(m: Match, node: ir.Node, axis_size: int | ir.SymbolicDim) -> Sequence[int] | None:
    """Return the sizes of the parts that a SplitToSequence makes of an axis; None if unknown.

    Its second input lists them, or is one size for all parts but a smaller last one; without it,
    the parts have size 1.
    """
    split_input = optional_input(node, 1)
    array = m.array(split_input) if split_input is not None else np.array(1)
    if array is None or not isinstance(axis_size, int):
        return None
    if array.ndim:
        sizes = [int(size) for size in array.reshape(-1)]
        return sizes if sum(sizes) == axis_size and min(sizes, default=0) >= 0 else None
    part_size = int(array)
    if part_size <= 0:
        return None
    return [min(part_size, axis_size - start) for start in range(0, axis_size, part_size)]


def _item_of_rows(data: ir.Value, axis: int, start: int, end: int) -> Item:
    """Return an Item that slices ``start`` to ``end`` of ``axis`` off ``data``."""

    def make(b: Builder) -> ir.Value:
        """Return the Slice."""
        bounds = (b.constant(np.array([number], np.int64)) for number in (start, end, axis))
        return b.op("Slice", data, *bounds)

    return make


def _item_of_row(data: ir.Value, axis: int, index: int) -> Item:
    """Return an Item that gathers row ``index`` of ``axis`` from ``data``, without that axis."""
    return lambda b: b.op("Gather", data, b.constant(np.array(index, np.int64)), axis=axis)


def _is_within(position: float, count: int) -> bool:
    """True if ``position`` is a valid index into ``count`` items; negative ones count from the
    end."""
    return -count <= position < count


unroll_sequences = rule_pass(
    "unroll_sequences",
    __doc__,
    [
        element_of_a_sequence,
        joined_sequence,
        length_of_a_sequence,
        element_of_an_optional,
        presence_of_an_element,
    ],
    exactness=EXACT,
)
